/** Entity tags: equal tags mean equal answers, based on the revisions of what the compiled query reads. */
import { hash } from "node:crypto";
import type { Claims } from "../database/claims.ts";
import type { DataVersions } from "../database/dataVersions.ts";
import type { Reads, ReadsOf } from "../database/statementReads.ts";
import type { TokenFacts } from "../database/tokenCheck.ts";
import type { CompiledQuery } from "./compiledQueries.ts";

/** The query and the viewer. */
export interface TaggedQuery {
  readonly query: string;
  readonly operationName: string | null | undefined;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  readonly claims: Claims;
  readonly facts: TokenFacts | undefined;
  readonly language: string | undefined;
}

/** The claims that decide what is read: sessions of a user read the same. */
const viewerOf = ({ userId, tokenId, organizationId, scopes }: Claims) => [
  userId,
  tokenId,
  organizationId,
  scopes,
];

export class EntityTags {
  readonly #load: () => Promise<ReadsOf>;
  readonly #dataVersions: DataVersions;
  readonly #known = new WeakMap<CompiledQuery, Reads>();

  #reads: Promise<ReadsOf> | undefined;

  /** @param load is called once, on first use */
  constructor(load: () => Promise<ReadsOf>, dataVersions: DataVersions) {
    this.#load = load;
    this.#dataVersions = dataVersions;
  }

  async #catalog(): Promise<ReadsOf> {
    try {
      return await (this.#reads ??= this.#load());
    } catch (error) {
      this.#reads = undefined;
      throw error;
    }
  }

  /** @returns undefined if the answer depends on data without revisions, or may not be cached */
  async find(
    compiled: CompiledQuery,
    tagged: TaggedQuery,
  ): Promise<{ text: string; reached: bigint } | undefined> {
    const catalog = await this.#catalog();
    let reads = this.#known.get(compiled);
    if (!reads) {
      reads = catalog.find(compiled.statements.map(({ text }) => text));
      this.#known.set(compiled, reads);
    }
    const { reach } = reads;
    if (reach === "unknown") return undefined;
    const version = await this.#dataVersions.read(tagged.claims, tagged.facts);
    const records = reach === "own" ? version?.own : version?.whole;
    if (!version || records === undefined) return undefined;
    const { query, operationName, variables, claims, language } = tagged;
    const parts = [catalog.version, query, operationName, variables, viewerOf(claims), language, records];
    const digest = hash("sha256", JSON.stringify(parts), "base64url");
    return { text: `W/"${digest.slice(0, 27)}"`, reached: version.reached };
  }
}
