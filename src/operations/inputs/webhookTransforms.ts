/** Transforms the arguments of webhook mutations for SQL. */
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

/** Implements the tags: checks a URL before it is stored; creates a secret and seals it for its webhook. */
export function webhookTransforms(seal: Seal, policy: AddressPolicy): WebhookTransforms {
  return {
    async publicAddress(value, { member, context }) {
      // Visitors must not cause DNS lookups; SQL refuses them.
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

/** A uuid as PostgreSQL writes it; SQL reports errors in any other text. */
function canonical(id: string): string {
  const digits = id.replaceAll(/[\s{}-]/g, "").toLowerCase();
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The id of a new webhook, and the seed from which app_private.seeded_id derives it too. */
function seededId(): { seed: string; webhook: string } {
  const time = Date.now().toString(16).padStart(12, "0");
  const seed = `${time}${randomBytes(16).toString("hex")}`;
  const hash = createHash("sha256").update(seed).digest("hex");
  return { seed, webhook: canonical(`${time}7${hash.slice(0, 3)}8${hash.slice(3, 18)}`) };
}
