/** Token check that is sent along with the statements of a query, instead of a lookup before them. */
import type { Claims } from "./claims.ts";

/** Access of a viewer, as returned by app_private.access_of. */
export interface Access {
  /** Settings that pass it on to app_hidden.handed_access. */
  readonly settings: Readonly<Record<string, string>>;
  /** Versions of the data that it was derived from. */
  readonly parties: readonly string[];
  readonly version: string;
}

/** Argument of app_private.stop_when_outdated. */
export interface TokenFacts {
  readonly userId: string;
  readonly sessionId: string | null;
  readonly tokenSha256: Buffer | null;
}

/** SQL expression that refuses the batch, its parameters, and the settings that apply if it does not. */
export interface CheckedSettings {
  readonly expression: (parameter: (value: unknown) => string) => string;
  readonly settings: Readonly<Record<string, string>>;
}

const nothing: Access = { settings: {}, parties: [], version: "" };
/** PERF: by token, since they are the same for all of its requests. */
const known = new WeakMap<
  TokenFacts,
  { readonly access: Access | undefined; readonly carried: CheckedSettings }
>();

function checkedSettings(facts: TokenFacts, access: Access | undefined): CheckedSettings {
  const before = known.get(facts);
  if (before && before.access === access) return before.carried;
  const { userId, sessionId, tokenSha256 } = facts;
  const { settings, parties, version } = access ?? nothing;
  const values = [userId, sessionId, tokenSha256, access ? parties : null, access ? version : null];
  const carried: CheckedSettings = {
    expression: (parameter) => `app_private.stop_when_outdated(${values.map(parameter).join(", ")})`,
    settings,
  };
  known.set(facts, { access, carried });
  return carried;
}

/** SQLSTATE of stop_when_outdated. */
export const OUTDATED = "PLAT2";

/**
 * The token of one request, which this process looked up within the last minute: it is assumed to be unchanged, and
 * the first statements of the operation verify that in their own round trip. If something has changed, it is looked
 * up again and the statements are resent.
 */
export class TokenCheck {
  readonly #facts: TokenFacts;
  readonly #access: Access | undefined;
  readonly #lookUp: (refused: boolean) => Promise<Claims>;
  /** Called with the claims of the token if it was looked up again. */
  onRenewed: (claims: Claims) => unknown = () => {};
  #passed = false;
  #renewal: Promise<void> | undefined;

  /** @param lookUp gets whether a statement was refused because the token or its access had changed */
  constructor(facts: TokenFacts, access: Access | undefined, lookUp: (refused: boolean) => Promise<Claims>) {
    this.#facts = facts;
    this.#access = access;
    this.#lookUp = lookUp;
  }

  /** Whether statements carry the check: until the token was looked up for this request. */
  get isCarried(): boolean {
    return this.#renewal === undefined;
  }

  /** The check to send with statements, if they carry one. */
  get carried(): CheckedSettings | undefined {
    return this.isCarried ? checkedSettings(this.#facts, this.#access) : undefined;
  }

  /** A batch with the check has succeeded. */
  passed(): void {
    this.#passed = true;
  }

  /**
   * Looks the token up, once per request.
   * @throws CodedError UNAUTHENTICATED if it has expired, UNAVAILABLE or INTERNAL if that cannot be determined
   */
  renew(): Promise<void> {
    return this.#lookUpOnce(true);
  }

  /**
   * Called at the end of an operation, and before one that acts outside the database: ensures that the token was
   * verified.
   */
  async complete(): Promise<void> {
    if (this.#renewal || !this.#passed) await this.#lookUpOnce(false);
  }

  #lookUpOnce(refused: boolean): Promise<void> {
    return (this.#renewal ??= this.#lookUp(refused).then((claims) => void this.onRenewed(claims)));
  }
}

const check = Symbol("token check");

/** Database settings that include the check of the token. */
export function withCheck<T extends Record<string, string | undefined>>(
  settings: T,
  of: TokenCheck | undefined,
): T {
  return of ? Object.assign(settings, { [check]: of }) : settings;
}

/** The check of statements under these settings. */
export function checkOf(settings: object | null | undefined): TokenCheck | undefined {
  return (settings as { [check]?: TokenCheck } | null | undefined)?.[check];
}
