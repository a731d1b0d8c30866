import type { Request, Response } from "express";
import { ExpressGrafserv } from "postgraphile/grafserv/express/v4";

type Digest = ReturnType<ExpressGrafserv["getDigest"]>;

/** grafserv without its own request handler: the application writes the responses, so that all have one form. */
export class Grafserv extends ExpressGrafserv {
  /** Executes an operation; returns the result as an object if possible. */
  answerOperation(request: Request, response: Response) {
    return this.#process(request, response, (digest) => {
      digest.path = this.dynamicOptions.graphqlPath;
      digest.preferJSON = true;
      // GET requests for registered documents are handled as if they were posted.
      digest.method = "POST";
    });
  }

  async #process(request: Request, response: Response, change: (digest: Digest) => void) {
    const digest = this.getDigest(this.dynamicOptions, request, response);
    change(digest);
    return this.processRequest(digest);
  }
}
