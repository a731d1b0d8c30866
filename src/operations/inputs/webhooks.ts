/** What becomes of the arguments of webhooks on their way to SQL. */
import { createHash, randomBytes } from "node:crypto";
import { CodedError } from "../../base/errors.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import {
  AddressRefused,
  AddressUnknown,
  resolvePublicAddress,
  type AddressPolicy,
} from "../../network/publicAddress.ts";
import { secretOfWebhook, type Seal } from "../../secrets/seal.ts";
import { freshSecret } from "../../webhooks/signature.ts";

export type WebhookTransforms = Record<"publicAddress" | "freshSecret", ArgumentTransform>;

/** Implementations of the tags: an address is checked before it is kept; a secret is made, and sealed for its webhook. */
export function webhookTransforms(seal: Seal, policy: AddressPolicy): WebhookTransforms {
  return {
    async publicAddress(value, { member, context }) {
      // Nobody without a token makes the service ask for names; SQL refuses them.
      if (!context.claims.userId) return value;
      const address = (value as string).trim();
      try {
        await resolvePublicAddress(address, policy);
      } catch (error) {
        if (!(error instanceof AddressRefused || error instanceof AddressUnknown)) throw error;
        throw new CodedError("BAD_USER_INPUT", error.message, { field: member });
      }
      return address;
    },
    freshSecret(_value, { input }) {
      const secret = freshSecret();
      const { seed, webhook } =
        typeof input.id === "string" ? { seed: undefined, webhook: canonical(input.id) } : seededId();
      return { secret, sealed: seal.seal(secret, secretOfWebhook(webhook)), seed, webhook };
    },
  };
}

/** A uuid as PostgreSQL writes it; SQL says what is wrong with any other text. */
function canonical(id: string): string {
  const digits = id.replaceAll(/[\s{}-]/g, "").toLowerCase();
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The id of a webhook to be made, and the seed from which app_private.seeded_id makes it too. */
function seededId(): { seed: string; webhook: string } {
  const time = Date.now().toString(16).padStart(12, "0");
  const seed = `${time}${randomBytes(16).toString("hex")}`;
  const hash = createHash("sha256").update(seed).digest("hex");
  return { seed, webhook: canonical(`${time}7${hash.slice(0, 3)}8${hash.slice(3, 18)}`) };
}
