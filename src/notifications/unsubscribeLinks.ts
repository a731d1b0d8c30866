/** The links that stop one kind of mails for one reader: good for that alone, without signing in, as long as its key lives. */
import { createHmac, hkdfSync } from "node:crypto";
import { isSameText } from "../sameText.ts";

/** The kind of mails that an organization writes to the leads of its workflows and drafts. */
export const marketing = "marketing";

export interface Choice {
  /** `marketing`, or a kind of notifications (a column of app_public.notification_settings). */
  kind: string;
  /** Who gets them: a lead, or a purchase without one; of notifications, a membership. */
  readerId: string;
}

export interface UnsubscribeLinks {
  sign(choice: Choice): string;
  /** @returns undefined for a token that is forged or incomplete */
  open(token: string): Choice | undefined;
}

/**
 * @param keys those of login tokens, from which keys of their own are derived: the first signs, all verify
 * @param baseUrl where the service is reached, without a trailing slash
 */
export function createUnsubscribeLinks(
  keys: readonly { secret: string }[],
  baseUrl: string,
): UnsubscribeLinks {
  const derived = keys.map(({ secret }) =>
    Buffer.from(hkdfSync("sha256", secret, "", "plat unsubscribe links", 32)),
  );
  const signatureBy = (key: Buffer, text: string): string =>
    createHmac("sha256", key).update(text).digest("base64url");
  return {
    sign({ kind, readerId }) {
      const text = `${kind}.${readerId}`;
      return `${baseUrl}/unsubscribe/${text}.${signatureBy(derived[0]!, text)}`;
    },
    open(token) {
      const match = /^(([a-z_]{1,40})\.([0-9a-f-]{36}))\.([\w-]{43})$/.exec(token);
      if (!match) return undefined;
      const [, text = "", kind = "", readerId = "", signature = ""] = match;
      return derived.some((key) => isSameText(signature, signatureBy(key, text)))
        ? { kind, readerId }
        : undefined;
    },
  };
}
