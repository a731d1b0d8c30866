import type { FieldArgs } from "postgraphile/grafast";
/**
 * Subscriptions: events of an organization as they are committed, and changes of given records. src/live selects the
 * events that the viewer may read; this plugin reads the requested fields, in one statement per update.
 */
import { context, lambda, listen, type ExecutableStep } from "postgraphile/grafast";
import { listOfCodec, pgSelect, TYPES } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/pg-sql2";
import { extendSchema, gql } from "postgraphile/utils";
import type { Subscriptions } from "../live/subscriptions.ts";
import type { Update } from "../live/updates.ts";
import type { AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace Grafast {
    interface Context {
      /** Opens subscriptions for the viewer of the request. */
      live?: Subscriptions | undefined;
    }
  }
  namespace GraphileConfig {
    interface Plugins {
      SubscriptionsPlugin: true;
    }
  }
}

const subscribeTo = (kind: "events" | "changed", args: Record<string, ExecutableStep>) => {
  const names = Object.keys(args);
  const $topic = lambda(Object.values(args), (values) => ({
    kind,
    ...Object.fromEntries(names.map((name, i) => [name, (values as unknown[])[i]])),
  }));
  return listen(context().get("live") as never, $topic as never);
};

const organizationIdOf = ($update: ExecutableStep) =>
  lambda($update, (update) => (update as Update).organizationId);

const upToSequenceOf = ($update: ExecutableStep) =>
  lambda($update, (update) => String((update as Update).upTo));

/** Events of an update, read with the rights of the viewer. */
function eventsOf(resource: AnyResource, $update: ExecutableStep) {
  const $organizationId = organizationIdOf($update);
  const $sequences = lambda($update, (update) =>
    (update as Update).events.map(({ sequence }) => String(sequence)),
  );
  const $select = pgSelect({ resource, identifiers: [], mode: "normal" });
  const { alias } = $select;
  const organizationId = $select.placeholder($organizationId, TYPES.uuid);
  const sequences = $select.placeholder($sequences, listOfCodec(TYPES.bigint));
  $select.where(sql`${alias}.organization_id = ${organizationId}`);
  $select.where(sql`${alias}.sequence = any (${sequences})`);
  $select.orderBy({
    fragment: sql`${$select.alias}.sequence`,
    codec: resource.codec.attributes.sequence!.codec,
    direction: "ASC",
  });
  return $select;
}

const typeDefs = gql`
  """
  Conditions on events, all of which must be met.
  """
  input EventSubscriptionFilter {
    """
    Event names, such as lead.created, or patterns, such as lead.* or *.
    """
    names: [String!]

    """
    Id or slug of the organization.
    """
    organizationId: ID!

    """
    Id or slug of the project that the records belong to.
    """
    projectId: ID

    """
    The record that changed.
    """
    subjectId: ID

    """
    Type of the changed record, such as lead.
    """
    subjectType: String
  }

  """
  Events that were committed since the previous update of the subscription.
  """
  type EventsUpdate {
    """
    Events in ascending \`sequence\`; empty if none matched up to \`upToSequence\`.
    """
    events: [Event!]!

    """
    The organization whose stream was subscribed to.
    """
    organizationId: ID!

    """
    All matching events up to this sequence number have been sent; pass it as \`afterSequence\` to resume.
    """
    upToSequence: String!
  }

  """
  Records that changed since the previous update of the subscription.
  """
  type ChangedUpdate {
    """
    Ids of the changed records whose events the viewer may see.
    """
    ids: [ID!]!

    """
    The organization whose stream was subscribed to.
    """
    organizationId: ID!

    """
    Queries from now on see all changes up to this sequence number.
    """
    upToSequence: String!
  }

  extend type Subscription {
    """
    Notifies of changes of given records, so that a client can query them again; at most 100 records of one organization.
    """
    changed(
      """
      Ids of up to 100 records, which must belong to the organization.
      """
      ids: [ID!]!

      """
      The organization, by id or slug.
      """
      organizationId: ID!
    ): ChangedUpdate!

    """
    Events of an organization as they are committed, each once, in the order of their sequence.
    """
    events(
      """
      Only events after this sequence number. Default: new events only.
      """
      afterSequence: String

      """
      Only events that match all fields of the filter.
      """
      filter: EventSubscriptionFilter!
    ): EventsUpdate!
  }
`;

export const SubscriptionsPlugin: GraphileConfig.Plugin = {
  ...extendSchema((build) => {
    const events = build.pgResources.events as unknown as AnyResource;
    return {
      typeDefs,
      objects: {
        Subscription: {
          plans: {
            events: {
              subscribePlan: (_$root: unknown, args: FieldArgs) =>
                subscribeTo("events", {
                  filter: args.getRaw("filter"),
                  afterSequence: args.getRaw("afterSequence"),
                }),
              plan: ($update: ExecutableStep) => $update,
            },
            changed: {
              subscribePlan: (_$root: unknown, args: FieldArgs) =>
                subscribeTo("changed", {
                  ids: args.getRaw("ids"),
                  organizationId: args.getRaw("organizationId"),
                }),
              plan: ($update: ExecutableStep) => $update,
            },
          },
        },
        EventsUpdate: {
          plans: {
            organizationId: organizationIdOf,
            upToSequence: upToSequenceOf,
            events: ($update: ExecutableStep) => eventsOf(events, $update),
          },
        },
        ChangedUpdate: {
          plans: {
            organizationId: organizationIdOf,
            upToSequence: upToSequenceOf,
            ids: ($update: ExecutableStep) =>
              lambda($update, (update) => [
                ...new Set((update as Update).events.map(({ subjectId }) => subjectId)),
              ]),
          },
        },
      },
    } as never;
  }),
  name: "SubscriptionsPlugin",
};
