/** Cache of recently looked-up tokens. */
import { isDeepStrictEqual } from "node:util";
import type { Claims } from "../database/claims.ts";
import type { Access, TokenFacts } from "../database/tokenCheck.ts";

/** Cached data of one token. */
export interface KnownToken {
  readonly claims: Claims;
  readonly facts: TokenFacts;
  /** Expiry in seconds since 1970; undefined if only the database knows. */
  readonly expiresAt: number | undefined;
  /** Minute of its last lookup, which records the use of the token. */
  readonly minute: number;
  /** Undefined if not determined yet, null if there is none to pass on. */
  access: Access | null | undefined;
}

const MOST_TOKENS = 10_000;
/** Of all accesses together. */
const MOST_CHARACTERS = 20_000_000;

/** The minute of a time in milliseconds since 1970. Cached lookups are valid within one minute of the clock. */
export const minuteOf = (ms: number): number => Math.floor(ms / 60_000);

/** By the SHA-256 of the token, least recently used first. */
export class KnownTokens {
  readonly #tokens = new Map<string, KnownToken>();
  #characters = 0;

  /** A token that was looked up within the last minute and has not expired since. */
  find(key: string, now = Date.now()): KnownToken | undefined {
    const known = this.#tokens.get(key);
    if (!known || known.minute !== minuteOf(now)) return undefined;
    if (known.expiresAt !== undefined && known.expiresAt * 1000 <= now) return undefined;
    this.#tokens.delete(key);
    this.#tokens.set(key, known);
    return known;
  }

  keep(key: string, token: Omit<KnownToken, "minute" | "access">): void {
    const minute = minuteOf(Date.now());
    const before = this.#tokens.get(key);
    // Requests made with it may still be in progress.
    if (before?.minute === minute && isDeepStrictEqual(before, { ...before, ...token })) return;
    // Access has versions of its own.
    const access = before?.access ?? undefined;
    this.forget(key);
    this.#tokens.set(key, { ...token, minute, access });
    this.#characters += charactersOf(access);
    this.#shrink();
  }

  /** Caches the access of a token, unless the token was looked up again meanwhile. */
  keepAccess(key: string, known: KnownToken, access: Access | null | undefined): void {
    if (this.#tokens.get(key) !== known) return;
    this.#characters += charactersOf(access) - charactersOf(known.access);
    known.access = access;
    this.#shrink();
  }

  forget(key: string): void {
    this.#characters -= charactersOf(this.#tokens.get(key)?.access);
    this.#tokens.delete(key);
  }

  #shrink(): void {
    for (const key of this.#tokens.keys()) {
      if (this.#tokens.size <= MOST_TOKENS && this.#characters <= MOST_CHARACTERS) return;
      this.forget(key);
    }
  }
}

function charactersOf(access: Access | null | undefined): number {
  return access ? Object.values(access.settings).reduce((sum, text) => sum + text.length, 0) : 0;
}
