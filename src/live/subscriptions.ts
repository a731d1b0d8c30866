/** Source of GraphQL subscriptions. */
import type { Bearer } from "../auth/authenticate.ts";
import { CodedError } from "../base/errors.ts";
import type { EventFilter } from "./batch.ts";
import type { Live } from "./live.ts";
import { sequenceOf } from "./sequence.ts";
import { type Update, Updates } from "./updates.ts";

/** Arguments of a subscription. */
export type Topic =
  | {
      readonly kind: "events";
      readonly filter: {
        readonly organizationId: string;
        readonly projectId?: string | null;
        readonly names?: readonly string[] | null;
        readonly subjectType?: string | null;
        readonly subjectId?: string | null;
      };
      readonly afterSequence?: string | null;
    }
  | { readonly kind: "changed"; readonly ids: readonly string[]; readonly organizationId: string };

export interface Subscriptions {
  /** @throws CodedError if the transport refuses the stream */
  subscribe(topic: Topic): Promise<AsyncIterableIterator<Update, undefined>>;
}

const MOST_IDS = 100;

/**
 * @param asked how to find the token, the client address, whom to notify when the subscription ends, and who ends it
 * when the client disconnects: an iterator that waits for its next value cannot
 */
export function subscriptions(
  live: Live,
  asked: {
    bearer: () => Promise<Bearer | undefined>;
    ip: string | undefined;
    ended: (error: CodedError) => void;
    opened: (close: () => void) => void;
  },
): Subscriptions {
  return {
    async subscribe(topic) {
      const bearer = await asked.bearer();
      if (!bearer) throw new CodedError("UNAUTHENTICATED", "Sign in to subscribe to events.");
      const organization = topic.kind === "events" ? topic.filter.organizationId : topic.organizationId;
      const project = topic.kind === "events" ? (topic.filter.projectId ?? undefined) : undefined;
      const { organizationId, projectId, head } = await live.begin(bearer.claims, organization, project);
      let filter: EventFilter;
      let after: number | undefined;
      if (topic.kind === "events") {
        const { names, subjectType, subjectId } = topic.filter;
        filter = {
          names: names ?? undefined,
          projectId,
          subjectType: subjectType ?? undefined,
          subjectId: subjectId?.toLowerCase(),
        };
        after = sequenceOf(topic.afterSequence ?? undefined, head, "afterSequence");
      } else {
        if (topic.ids.length > MOST_IDS)
          throw new CodedError("LIMIT_EXCEEDED", `At most ${MOST_IDS} records can be subscribed to.`, {
            field: "ids",
            limit: MOST_IDS,
          });
        filter = { subjectIds: new Set(topic.ids.map((id) => id.toLowerCase())) };
      }
      const release = live.take({ userId: bearer.claims.userId!, organizationId, ip: asked.ip });
      try {
        const updates = new Updates(organizationId, { filter, position: after ?? head });
        const close = await live.open(updates, bearer, organizationId);
        updates.onClose = () => {
          close();
          release();
          if (updates.error) asked.ended(updates.error);
        };
        asked.opened(() => void updates.return());
        return updates;
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
