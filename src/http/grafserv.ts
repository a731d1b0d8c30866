import type { Request, Response } from "express";
import { ExpressGrafserv } from "postgraphile/grafserv/express/v4";

type Digest = ReturnType<ExpressGrafserv["getDigest"]>;

/** grafserv without its own request handler: the application writes the answers, so that all have one form. */
export class Grafserv extends ExpressGrafserv {
  /** Answers an operation, as an object where that is possible. */
  answerOperation(request: Request, response: Response) {
    return this.#process(request, response, (digest) => {
      digest.path = this.dynamicOptions.graphqlPath;
      digest.preferJSON = true;
      // By GET come queries of registered documents, as if they were posted.
      digest.method = "POST";
    });
  }

  async #process(request: Request, response: Response, change: (digest: Digest) => void) {
    const digest = this.getDigest(this.dynamicOptions, request, response);
    change(digest);
    return this.processRequest(digest);
  }
}
