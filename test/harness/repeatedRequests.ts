import { type Agent, request } from "node:https";
import type { Person } from "./api.ts";
import { mutationOf } from "./records.ts";

/** A request that is repeated until it is answered. */
export interface RepeatedRequest {
  /** The operation. */
  field: string;
  input: Record<string, unknown>;
  /** The idempotency key of its attempts. */
  key: string;
}

/**
 * Sends such a request to a service that may die. @returns the id of the record, the code of the refusal, or LOST if
 * there was no response.
 */
export function sendRepeatedRequest(
  url: string,
  agent: Agent,
  { token }: Person,
  { field, input, key }: RepeatedRequest,
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
