/**
 * Secrets that must be read again, encrypted at rest: AES-256-GCM with a key that the database never sees. Each is bound to its column and
 * row as associated data, so that write access to the database does not allow using the secret of one row as that of another.
 *
 * The format is `v2:<name of the key>.<base64url of fingerprint, nonce, tag and ciphertext>`. The fingerprint distinguishes a key that was
 * replaced under the same name from a modified text. Earlier versions wrote `<name of the key>.<base64url of nonce, tag and ciphertext>`
 * without a binding: these are only opened for columns that may still have them, which the job secrets__seal ends.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** A named key. The first of a list seals, all of them open. */
export interface SealingKey {
  kid: string;
  secret: string;
}

/** Where a sealed text is stored; it opens nowhere else. */
export interface SealedPlace {
  /** With its table, such as `app_private.webhook_secrets.sealed`; or its purpose, if it is not in a table. */
  column: string;
  /** The key of the row, such as a uuid in its canonical form. */
  row: string;
}

export interface Seal {
  /** The prefix of sealed texts up to the last dot. */
  readonly mark: string;
  /** @returns a different text each time */
  seal(text: string, place: SealedPlace): string;
  /** @throws SealFault */
  open(sealed: string, place: SealedPlace): string;
}

/** A text that cannot be opened. Its message contains no secrets. */
export class SealFault extends Error {
  /** KEY: its key is missing or was replaced; a matter for the operator. PLACE: it was modified, or belongs to another row. */
  readonly reason: "KEY" | "PLACE";

  constructor(reason: "KEY" | "PLACE", message: string) {
    super(message);
    this.name = "SealFault";
    this.reason = reason;
  }
}

export interface SealOptions {
  /** Columns that may have texts of earlier versions without a binding; none by default. */
  unbound?: ReadonlySet<string>;
  /** Called for every text that does not belong to its row. */
  log?: { error(facts: object, message: string): void };
}

/** The signing secrets of webhooks. */
export const secretOfWebhook = (webhookId: string): SealedPlace => ({
  column: "app_private.webhook_secrets.sealed",
  row: webhookId,
});

/** The credentials of integrations. */
export const credentialsOf = (integrationId: string): SealedPlace => ({
  column: "app_private.integration_secrets.sealed",
  row: integrationId,
});

/** The secrets of authenticator apps. */
export const secretOfSecondFactor = (userId: string): SealedPlace => ({
  column: "app_private.second_factors.sealed",
  row: userId,
});

const algorithm = "aes-256-gcm";
const version = "v2:";
const fingerprintBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;

/** @param keys never empty */
export function createSeal(
  keys: readonly SealingKey[],
  { unbound = new Set(), log }: SealOptions = {},
): Seal {
  const derived = new Map(
    keys.map(({ kid, secret }) => [
      kid,
      {
        key: derive(secret, "plat sealed secrets", 32),
        fingerprint: derive(secret, "plat fingerprint of sealed secrets", fingerprintBytes),
      },
    ]),
  );
  const [first] = derived.keys();
  if (first === undefined) throw new Error("There is no key to seal with.");
  const mark = `${version}${first}`;

  function misplaced({ column, row }: SealedPlace, what: string): SealFault {
    const message = `A sealed value of ${column} ${what}; it is not used.`;
    log?.error({ event: "secret.misplaced", code: "SEALED_VALUE_MISPLACED", column, row }, message);
    return new SealFault("PLACE", message);
  }

  return {
    mark,
    seal(text, place) {
      const nonce = randomBytes(nonceBytes);
      const { key, fingerprint } = derived.get(first)!;
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(associatedData(mark, place));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return `${mark}.${Buffer.concat([fingerprint, nonce, cipher.getAuthTag(), sealed]).toString("base64url")}`;
    },
    open(sealed, place) {
      const dot = sealed.lastIndexOf(".");
      const isBound = sealed.startsWith(version);
      const kid = sealed.slice(isBound ? version.length : 0, Math.max(dot, 0));
      const bytes = Buffer.from(sealed.slice(dot + 1), "base64url");
      if (!isBound && !unbound.has(place.column)) throw misplaced(place, "is bound to no row");
      const known = derived.get(kid);
      if (!known) throw new SealFault("KEY", `The key ${kid} that a secret was sealed with is missing.`);
      if (isBound && !bytes.subarray(0, fingerprintBytes).equals(known.fingerprint))
        throw new SealFault("KEY", `The key ${kid} is not the one that a secret was sealed with.`);
      const rest = isBound ? bytes.subarray(fingerprintBytes) : bytes;
      try {
        const decipher = createDecipheriv(algorithm, known.key, rest.subarray(0, nonceBytes), {
          authTagLength: tagBytes,
        });
        decipher.setAuthTag(rest.subarray(nonceBytes, nonceBytes + tagBytes));
        if (isBound) decipher.setAAD(associatedData(`${version}${kid}`, place));
        const text = decipher.update(rest.subarray(nonceBytes + tagBytes));
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch {
        if (isBound) throw misplaced(place, "was changed, or sealed for another row");
        throw new SealFault("KEY", `The key ${kid} is not the one that a secret was sealed with.`);
      }
    },
  };
}

const derive = (secret: string, purpose: string, bytes: number) =>
  Buffer.from(hkdfSync("sha256", secret, "", purpose, bytes));

/** A former value, as in `previous_sealed`, keeps the binding of the current value: SQL moves it, and has no key. */
function associatedData(mark: string, { column, row }: SealedPlace): Buffer {
  return Buffer.from(JSON.stringify([mark, column.replace(".previous_", "."), row]));
}
