/**
 * Proposals of agents: a user sees what a mutation would do and approves exactly that. Nothing is stored: the id
 * proves who proposed what, its expiry, and its effects.
 */
import { createHash, createHmac } from "node:crypto";
import { CodedError } from "../../base/errors.ts";
import type { ReviewedEvents } from "../../database/reviewedTransaction.ts";
import { isSameText } from "../../secrets/isSameText.ts";

/** A proposal and its author. */
export interface Proposed {
  userId: string;
  tokenId: string | undefined;
  mutation: string;
  input: Record<string, unknown>;
  selection: string | undefined;
}

/** Time to approve it. */
export const MINUTES = 10;

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const moment = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

const digest = (text: string) => createHash("sha256").update(text).digest("base64url").slice(0, 22);

/** Canonical JSON with sorted members, so that equal values have equal texts. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .join(",")}}`;
}

/**
 * Creation time of an id, in milliseconds since 1970: ids begin with the time; others belong to records without
 * history.
 */
const madeAt = (id: string): number =>
  id[14] === "7" ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : Infinity;

/**
 * Digest of the effects of an operation: equal as long as the changed records are the same. Ids of new records and
 * timestamps differ each time and do not count.
 */
export function fingerprint({ events, moreEvents }: ReviewedEvents): string {
  const created = events.filter(({ name }) => name.endsWith(".created"));
  const began = Math.min(...created.map(({ subjectId }) => madeAt(subjectId))) - 1_000;
  const made = new Map<string, string>();
  const label = (id: string) => {
    if (madeAt(id) < began) return id;
    if (!made.has(id)) made.set(id, `made ${made.size}`);
    return made.get(id)!;
  };
  const text = canonical({ events, moreEvents });
  return digest(text.replaceAll(uuid, label).replaceAll(moment, "then"));
}

const lengths = { expires: 9, fingerprint: 22 };

/** Creates and verifies the ids of proposals. @param secret that of the service */
export function createProposals(secret: string) {
  const key = createHmac("sha256", secret).update("proposals of agents").digest();
  const prove = (proposed: Proposed, expires: string, print: string) =>
    createHmac("sha256", key)
      .update(canonical({ ...proposed, expires, print }))
      .digest("base64url")
      .slice(0, 32);
  return {
    issue(proposed: Proposed, events: ReviewedEvents): { proposal: string; expiresAt: string } {
      const until = Date.now() + MINUTES * 60_000;
      const expires = until.toString(36).padStart(lengths.expires, "0");
      const print = fingerprint(events);
      const expiresAt = new Date(until).toISOString();
      return { proposal: `${expires}${print}${prove(proposed, expires, print)}`, expiresAt };
    },
    /**
     * Returns a function that compares the effects on execution with the approved ones.
     * @throws CodedError BAD_USER_INPUT for a proposal by another viewer, of another operation, or expired
     */
    read(proposal: string, proposed: Proposed): (events: ReviewedEvents) => void {
      const expires = proposal.slice(0, lengths.expires);
      const print = proposal.slice(lengths.expires, lengths.expires + lengths.fingerprint);
      const proof = proposal.slice(lengths.expires + lengths.fingerprint);
      if (!isSameText(proof, prove(proposed, expires, print)))
        throw new CodedError(
          "BAD_USER_INPUT",
          "There is no such proposal of this mutation with this input and token; propose it first, and commit exactly the same input.",
          { field: "proposal" },
        );
      if (Number.parseInt(expires, 36) < Date.now())
        throw new CodedError("BAD_USER_INPUT", "The proposal has expired; propose it again.", {
          field: "proposal",
        });
      return (events) => {
        if (fingerprint(events) === print) return;
        throw new CodedError(
          "CONFLICT",
          "The data behind the proposal has changed, so that it would now have another effect; nothing was done. Propose it again.",
          { field: "proposal", retryable: false },
        );
      };
    },
  };
}
