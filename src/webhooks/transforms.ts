/** What becomes of the arguments of webhooks on their way to SQL. */
import { CodedError } from "../errors.ts";
import type { ArgumentTransform } from "../operations/members.ts";
import {
  AddressRefused,
  AddressUnknown,
  resolvePublicAddress,
  type AddressPolicy,
} from "../outbound/publicAddress.ts";
import type { Seal } from "../seal.ts";
import { freshSecret } from "./signature.ts";

export type WebhookTransforms = Record<"publicAddress" | "freshSecret", ArgumentTransform>;

/** Implementations of the tags: an address is checked before it is kept; a secret is made and sealed. */
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
    freshSecret() {
      const secret = freshSecret();
      return { secret, sealed: seal.seal(secret) };
    },
  };
}
