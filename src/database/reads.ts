/**
 * What a statement reads, found in the catalog: the tables that it names, and those that the views, policies and functions name which it goes through.
 * Bodies of functions name everything with its schema, since each pins its search path.
 */
import { createHash } from "node:crypto";
import type { Pool } from "pg";

/** Who decides on what a statement can see of its tables. */
export type Reach =
  /** The viewer sees rows of organizations that they have a part in, and no others. */
  | "own"
  /** Rows of any organization, such as what is public. */
  | "whole";

/** What the answer of statements depends on; `because` says why that is not known, or not counted by revisions. */
export type Reads = { readonly reach: Reach } | { readonly reach: "unknown"; readonly because: string };

/** A function, or a table or view with its policies. */
interface Item {
  readonly name: string;
  readonly kind: "function" | "table" | "view";
  /** SQL: bodies, definitions, conditions of policies for reading. */
  readonly text: string;
  /** Of a function: whether it sees all rows. */
  readonly is_definer: boolean;
  /** Of a table: whether each change of a row counts up the revision of its stream, or nothing ever changes it. */
  readonly is_counted: boolean;
  readonly is_constant: boolean;
  /** Of a table: whether each row belongs to an organization, and visitors see none. */
  readonly is_private: boolean;
}

const catalog = "select * from app_private.what_is_read()";

const reference = /\bapp_(?:public|hidden|private)\.\w+/g;
/** What the API signs, for a while. */
const signed = /\bapp_\w+\.(?:file_address|login_token)\b/;
/** What is another thing each time, or at another time. */
const clock =
  /\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|age|random|gen_random_uuid|uuidv4|uuidv7|nextval|currval|lastval|pg_current_\w+|pg_last_\w+|pg_is_in_recovery|pg_stat_\w+|inet_client_addr|setseed)\s*\(|\b(?:current_date|current_time|current_timestamp|localtime|localtimestamp|pg_stat_\w+|pg_locks|pg_settings)\b/i;
const setting = /\b(?:current_setting|setting)\s*\(\s*(?:'(?:plat\.)?(\w+)'|([^)']+))/gi;
/** Settings of a request that say who asks and in which language, by which answers are told apart. */
const known = new Set(["user_id", "token_id", "organization_id", "scopes", "language"]);
/** Of access that is handed on: its versions are asked for. */
const handed = /\bapp_hidden\.handed_access\b/;

const unquoted = (text: string) => text.replaceAll('"', "");
const withoutComments = (text: string) => text.replaceAll(/--[^\n]*/g, "");

/** Finds what statements read. */
export class ReadsOf {
  readonly #items = new Map<string, Item[]>();
  /** Tells catalogs apart. */
  readonly version: string;

  constructor(items: readonly Item[]) {
    for (const item of items) this.#items.set(item.name, [...(this.#items.get(item.name) ?? []), item]);
    this.version = createHash("sha256").update(JSON.stringify(items)).digest("base64url").slice(0, 16);
  }

  static async load(pool: Pick<Pool, "query">): Promise<ReadsOf> {
    return new ReadsOf((await pool.query<Item>(catalog)).rows);
  }

  /** What the answer of these statements depends on. */
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
          // A function with the rights of its owner looks beyond what policies show.
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

/** SQL that is gone through. */
interface Text {
  readonly text: string;
  readonly of: string;
  /** Whether it is carried out with the rights of the owner, for whom no policies hold. */
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
