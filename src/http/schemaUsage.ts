import { setImmediate as yieldToOthers } from "node:timers/promises";
import {
  type DocumentNode,
  type GraphQLSchema,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "postgraphile/graphql";
import type { Pool } from "pg";
import type { Logger } from "../base/log.ts";
import type { Claims } from "../database/claims.ts";
import type { KnownDocument } from "../compiled/knownDocuments.ts";

/** Maximum number of uses that wait to be written. Beyond it, a use is recorded when it occurs again. */
const MOST_PENDING = 500;
/** Uses in one statement. */
const USES_AT_ONCE = 50;
/** Number of users that are cached for a document. Above it, uses are recorded repeatedly. */
const MOST_USERS = 1_000;

/**
 * The schema coordinates that a valid document uses: fields, arguments, literal fields of input objects and
 * enumeration values, types of variables and of fragments. Introspection is omitted.
 */
export function schemaCoordinates(schema: GraphQLSchema, document: DocumentNode): string[] {
  const found = new Set<string>();
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      NamedType: ({ name }) => void found.add(name.value),
      Field({ name }) {
        const parent = types.getParentType();
        if (parent && !name.value.startsWith("__")) found.add(`${parent.name}.${name.value}`);
      },
      Argument({ name }, _key, _parent, _path, ancestors) {
        const field = types.getFieldDef();
        const parent = types.getParentType();
        const isOfField = ancestors.findLast((node) => "kind" in node)?.kind === "Field";
        if (field && parent && isOfField) found.add(`${parent.name}.${field.name}(${name.value}:)`);
      },
      ObjectField({ name }) {
        const input = types.getParentInputType();
        if (input && "name" in input) found.add(`${input.name}.${name.value}`);
      },
      EnumValue({ value }) {
        const input = types.getInputType();
        const name = input && String(input).replace(/[![\]]/g, "");
        if (name) found.add(`${name}.${value}`);
      },
    }),
  );
  return [...found].filter((coordinate) => !coordinate.startsWith("__"));
}

/** A user of a document, in the organization of their access token if it is restricted to one. */
interface Use {
  readonly userId: string;
  readonly organizationId: string | undefined;
}

interface Noted {
  readonly document: DocumentNode;
  readonly use: Use;
}

const today = () => new Date().toISOString().slice(0, 10);

export interface SchemaUsageOptions {
  schema: GraphQLSchema;
  /** Connections of plat_authenticator. */
  pool: Pick<Pool, "query">;
  log: Logger;
  /** Milliseconds between the first use and writing it together with later ones. Default: a minute. */
  delayMs?: number | undefined;
}

/** Records which fields, arguments and input types each user uses, once a day for each document and user. */
export class SchemaUsage {
  readonly #options: SchemaUsageOptions;
  /** Users of the current day, by document. */
  readonly #noted = new WeakMap<KnownDocument, { day: string; users: Set<string> }>();
  readonly #coordinates = new WeakMap<DocumentNode, readonly string[]>();
  #pending: Noted[] = [];
  #timer: NodeJS.Timeout | undefined;
  #day = today();

  constructor(options: SchemaUsageOptions) {
    this.#options = options;
  }

  /** Records that a document was used with such a token. Visitors belong to no organization. */
  note(known: KnownDocument, { userId, organizationId }: Claims): void {
    if (userId === null || !("document" in known.result)) return;
    const key = organizationId === undefined ? userId : `${userId} ${organizationId}`;
    let noted = this.#noted.get(known);
    if (noted?.day !== this.#day || noted.users.size >= MOST_USERS)
      this.#noted.set(known, (noted = { day: this.#day, users: new Set() }));
    if (noted.users.has(key) || this.#pending.length >= MOST_PENDING) return;
    noted.users.add(key);
    this.#pending.push({ document: known.result.document, use: { userId, organizationId } });
    this.#timer ??= setTimeout(() => void this.write(), this.#options.delayMs ?? 60_000).unref();
  }

  /** Writes the recorded uses. A failure is logged, and these uses are lost until the next day. */
  async write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#day = today();
    const pending = this.#pending;
    this.#pending = [];
    if (pending.length === 0) return;
    while (pending.length > 0) await this.#writeSome(pending.splice(0, USES_AT_ONCE));
  }

  async #writeSome(some: readonly Noted[]): Promise<void> {
    const { schema, pool, log } = this.#options;
    const uses = [];
    for (const { document, use } of some) {
      let coordinates = this.#coordinates.get(document);
      if (!coordinates) {
        this.#coordinates.set(document, (coordinates = schemaCoordinates(schema, document)));
        await yieldToOthers();
      }
      uses.push({ user_id: use.userId, organization_id: use.organizationId ?? null, coordinates });
    }
    await pool
      .query({
        name: "note_schema_usage",
        text: "select app_private.note_schema_usage($1)",
        values: [JSON.stringify(uses)],
      })
      .catch((error: unknown) =>
        log.warn(
          { event: "graphql.usage_lost", err: error },
          "Recording the use of schema coordinates failed; their next use on another day is recorded.",
        ),
      );
  }
}
