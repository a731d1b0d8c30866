import type { JobHelpers } from "graphile-worker";
import type { CertificateFacts } from "../../signing/certificate.ts";
import { createEmbeddedSigning } from "./embedded.ts";
import type { SigningProvider } from "./provider.ts";

export {
  SigningFailed,
  type Envelope,
  type EnvelopeState,
  type Proof,
  type SigningProvider,
} from "./provider.ts";

/** Where an agreement is signed. */
export async function openSigningProvider(
  { query }: Pick<JobHelpers, "query">,
  agreementId: string,
): Promise<SigningProvider> {
  return createEmbeddedSigning(async () => {
    const { rows } = await query<{ facts: CertificateFacts | null }>(
      "select app_private.signing_certificate($1) as facts",
      [agreementId],
    );
    return rows[0]!.facts;
  });
}
