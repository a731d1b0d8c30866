/** The check of a token that goes along with the statements of a query, in place of a look-up ahead of them. */
import type { Claims } from "./claims.ts";

/** What a viewer may, as app_private.access_of found it. */
export interface Access {
  /** Settings that hand it on to app_hidden.handed_access. */
  readonly settings: Readonly<Record<string, string>>;
  /** From which versions of what it was found. */
  readonly parties: readonly string[];
  readonly version: string;
}

/** What app_private.stop_when_outdated asks about. */
export interface TokenFacts {
  readonly userId: string;
  readonly sessionId: string | null;
  readonly tokenSha256: Buffer | null;
}

/** An SQL expression that refuses the batch, its parameters, and settings that hold where it does not. */
export interface CheckedSettings {
  readonly expression: (parameter: (value: unknown) => string) => string;
  readonly settings: Readonly<Record<string, string>>;
}

/** SQLSTATE of stop_when_outdated. */
export const OUTDATED = "PLAT2";

/**
 * The token of one request that was looked up by this process within the same minute: it is believed to hold as it did, and the first
 * statements of the operation ask, in their own round trip. Where something has changed it is looked up after all, and they are sent again.
 */
export class TokenCheck {
  readonly #facts: TokenFacts;
  readonly #access: Access | undefined;
  readonly #lookUp: (refused: boolean) => Promise<Claims>;
  /** Told what the token stands for, when that was looked up after all. */
  onRenewed: (claims: Claims) => unknown = () => {};
  #passed = false;
  #renewal: Promise<void> | undefined;

  /** @param lookUp is told whether a statement was refused because the token or its access had changed */
  constructor(facts: TokenFacts, access: Access | undefined, lookUp: (refused: boolean) => Promise<Claims>) {
    this.#facts = facts;
    this.#access = access;
    this.#lookUp = lookUp;
  }

  /** What statements carry; undefined once the token was looked up for this request. */
  get carried(): CheckedSettings | undefined {
    if (this.#renewal) return undefined;
    const { userId, sessionId, tokenSha256 } = this.#facts;
    const { settings = {}, parties = null, version = null } = this.#access ?? {};
    const values = [userId, sessionId, tokenSha256, parties, version];
    return {
      expression: (parameter) => `app_private.stop_when_outdated(${values.map(parameter).join(", ")})`,
      settings,
    };
  }

  /** A batch that carried the check went through. */
  passed(): void {
    this.#passed = true;
  }

  /**
   * Looks the token up, once for the request.
   * @throws CodedError UNAUTHENTICATED when it has ended, UNAVAILABLE or INTERNAL when that cannot be found out
   */
  renew(): Promise<void> {
    return this.#lookUpOnce(true);
  }

  /** For the end of an operation, and ahead of one that acts outside of the database: makes sure that somebody has asked. */
  async complete(): Promise<void> {
    if (this.#renewal || !this.#passed) await this.#lookUpOnce(false);
  }

  #lookUpOnce(refused: boolean): Promise<void> {
    return (this.#renewal ??= this.#lookUp(refused).then((claims) => void this.onRenewed(claims)));
  }
}

const check = Symbol("token check");

/** Settings for the database that know how the token in use is checked. */
export function withCheck<T extends Record<string, string | undefined>>(
  settings: T,
  of: TokenCheck | undefined,
): T {
  return of ? Object.assign(settings, { [check]: of }) : settings;
}

/** The check that statements under these settings carry. */
export function checkOf(settings: object | null | undefined): TokenCheck | undefined {
  return (settings as { [check]?: TokenCheck } | null | undefined)?.[check];
}
