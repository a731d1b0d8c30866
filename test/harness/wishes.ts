import { type Agent, request } from "node:https";
import type { Person } from "./api.ts";
import { mutationOf } from "./records.ts";

/** What somebody asks for until there is an answer. */
export interface Wish {
  /** The operation. */
  field: string;
  input: Record<string, unknown>;
  /** The idempotency key under which it is asked for again. */
  key: string;
}

/** Sends a wish to a service that may die: the record's id, the code of the refusal, or LOST when no answer came. */
export function sendWish(
  url: string,
  agent: Agent,
  { token }: Person,
  { field, input, key }: Wish,
): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${token}`,
      "idempotency-key": key,
    };
    const outgoing = request(`${url}/graphql`, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("error", () => resolve("LOST"));
      response.on("end", () => {
        const { data, errors } = JSON.parse(text);
        resolve(data?.[field]?.id ?? errors[0].extensions.code);
      });
    });
    outgoing.on("error", () => resolve("LOST"));
    outgoing.end(JSON.stringify({ query: mutationOf(field), variables: { input } }));
  });
}
