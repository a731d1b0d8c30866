/**
 * Dependencies of a statement, found in the catalog: the tables that it names, and those named by the views, policies
 * and functions that it uses. Function bodies qualify every name, since each pins its search path.
 */
import { createHash } from "node:crypto";
import type { Pool } from "pg";

/** The scope that determines the visible rows of a table. */
export type Reach =
  /** Only rows of the viewer's organizations. */
  | "own"
  /** Rows of any organization, such as what is public. */
  | "whole";

/** Dependencies of a response; `because` says why they are unknown, or not covered by revisions. */
export type Reads = { readonly reach: Reach } | { readonly reach: "unknown"; readonly because: string };

/** A function, or a table or view with its policies. */
interface Item {
  readonly name: string;
  readonly kind: "function" | "table" | "view";
  /** SQL: function bodies, view definitions, conditions of select policies. */
  readonly text: string;
  /** For a function: whether it sees all rows. */
  readonly is_definer: boolean;
  /** For a table: whether each row change increments the revision of its stream, or nothing ever changes it. */
  readonly is_counted: boolean;
  readonly is_constant: boolean;
  /** For a table: whether each row belongs to an organization and is invisible to visitors. */
  readonly is_private: boolean;
}

const catalog = "select * from app_private.what_is_read()";

const reference = /\bapp_(?:public|hidden|private)\.\w+/g;
/** URLs signed by the API, which expire. */
const signed = /\bapp_\w+\.(?:file_address|login_token)\b/;
/** Functions that are volatile or depend on time. */
const clock =
  /\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|age|random|gen_random_uuid|uuidv4|uuidv7|nextval|currval|lastval|pg_current_\w+|pg_last_\w+|pg_is_in_recovery|pg_stat_\w+|inet_client_addr|setseed)\s*\(|\b(?:current_date|current_time|current_timestamp|localtime|localtimestamp|pg_stat_\w+|pg_locks|pg_settings)\b/i;
const setting = /\b(?:current_setting|setting)\s*\(\s*(?:'(?:plat\.)?(\w+)'|([^)']+))/gi;
/** Request settings for viewer and language, which are part of the cache key. */
const known = new Set(["user_id", "token_id", "organization_id", "scopes", "language"]);
/** Settings of the cached access, whose versions are checked. */
const handed = /\bapp_hidden\.handed_access\b/;

const unquoted = (text: string) => text.replaceAll('"', "");
const withoutComments = (text: string) => text.replaceAll(/--[^\n]*/g, "");

/** Finds the dependencies of statements. */
export class ReadsOf {
  readonly #items = new Map<string, Item[]>();
  /** Identifies a catalog state. */
  readonly version: string;

  constructor(items: readonly Item[]) {
    for (const item of items) this.#items.set(item.name, [...(this.#items.get(item.name) ?? []), item]);
    this.version = createHash("sha256").update(JSON.stringify(items)).digest("base64url").slice(0, 16);
  }

  static async load(pool: Pick<Pool, "query">): Promise<ReadsOf> {
    return new ReadsOf((await pool.query<Item>(catalog)).rows);
  }

  /** Dependencies of the response to these statements. */
  find(statements: readonly string[]): Reads {
    let reach: Reach = "own";
    const seen = new Set<string>();
    const open = statements.map((text): Text => ({ text, of: "the query", asOwner: false }));
    for (let next = open.pop(); next; next = open.pop()) {
      const text = withoutComments(unquoted(next.text));
      const because = reasonAgainst(text);
      if (because) return { reach: "unknown", because: `${next.of}: ${because}` };
      for (const [name] of text.matchAll(reference)) {
        const key = `${name} ${next.asOwner}`;
        if (seen.has(key)) continue;
        seen.add(key);
        for (const item of this.#items.get(name) ?? []) {
          if (item.kind === "function" && handed.test(item.text)) continue;
          if (item.kind === "table" && !item.is_counted && !item.is_constant)
            return { reach: "unknown", because: `${next.of} reads ${name}, whose changes are no events` };
          // A security definer function sees more than policies allow.
          if (item.kind === "table" ? !item.is_private && !item.is_constant : item.is_definer)
            reach = "whole";
          const asOwner = next.asOwner || item.is_definer;
          if (!(asOwner && item.kind === "table")) open.push({ text: item.text, of: name, asOwner });
        }
      }
    }
    return { reach };
  }
}

/** SQL to analyze. */
interface Text {
  readonly text: string;
  readonly of: string;
  /** Whether it runs with the rights of the owner, to whom policies do not apply. */
  readonly asOwner: boolean;
}

function reasonAgainst(text: string): string | undefined {
  const found = clock.exec(text);
  if (found) return `asks ${found[0]}`;
  if (signed.test(text)) return "gives what is signed for a while";
  if (/\bexecute\b/i.test(text)) return "makes statements";
  for (const [whole, name] of text.matchAll(setting))
    if (name === undefined || !known.has(name)) return `reads the setting ${name ?? whole}`;
  return undefined;
}
