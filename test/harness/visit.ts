import { request } from "node:https";

export interface Page {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}

/** Requests a page of the service like a browser or mail program, without a token. */
export const visit = (url: URL, method = "GET", body?: string): Promise<Page> =>
  new Promise((resolve, reject) => {
    request(
      url,
      {
        method,
        rejectUnauthorized: false,
        agent: false,
        ...(body && {
          headers: { "content-type": "application/x-www-form-urlencoded", "content-length": body.length },
        }),
      },
      (reply) => {
        let text = "";
        reply.on("data", (part) => (text += part));
        reply.on("end", () => resolve({ status: reply.statusCode!, headers: reply.headers, text }));
      },
    )
      .on("error", reject)
      .end(body);
  });
