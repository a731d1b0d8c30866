import type { JobHelpers } from "graphile-worker";
import type { CertificateFacts } from "../../pdf/writeCertificate.ts";
import { createDocusign, type DocusignAccount } from "./docusignClient.ts";
import { createEmbeddedSigning } from "./embeddedSigning.ts";
import { SigningFailed, type SigningProvider } from "./signingProvider.ts";

export {
  SigningFailed,
  type Envelope,
  type EnvelopeState,
  type Proof,
  type SigningProvider,
} from "./signingProvider.ts";

/** Returned by app_private.envelope_of for an agreement that is signed elsewhere. */
export interface KnownEnvelope {
  integrationId: string;
  envelopeId: string | null;
}

/** The provider of an agreement, and its envelope id there. */
export interface Signing {
  provider: SigningProvider;
  /** Undefined if it is signed here. */
  envelope: KnownEnvelope | undefined;
}

type Helpers = Pick<JobHelpers, "query" | "integrations" | "serviceUrl">;

/** @throws SigningFailed if the organization's integration does not work at the moment */
export async function openSigning(helpers: Helpers, agreementId: string): Promise<Signing> {
  const { query, integrations, serviceUrl } = helpers;
  const { rows: known } = await query<{ envelope: KnownEnvelope | null }>(
    "select app_private.envelope_of($1) as envelope",
    [agreementId],
  );
  const envelope = known[0]!.envelope;
  if (envelope) {
    const account = await integrations.account(envelope.integrationId);
    if (!account)
      throw new SigningFailed(
        "SETTINGS",
        "The integration that agreements are signed by does not work; refresh it.",
      );
    const { hostname } = new URL(serviceUrl);
    // The database refuses unknown envelopes; the state of others is then read.
    const isKnown = /\.[a-z]/i.test(hostname) || account.policy.loopback;
    const provider = createDocusign({
      ...(account as unknown as DocusignAccount),
      policy: account.policy,
      noticeUrl: (id) => (isKnown ? `${serviceUrl}/webhooks/signing/${id}` : undefined),
    });
    return { provider, envelope };
  }
  const provider = createEmbeddedSigning(async () => {
    const { rows } = await query<{ facts: CertificateFacts | null }>(
      "select app_private.signing_certificate($1) as facts",
      [agreementId],
    );
    return rows[0]!.facts;
  });
  return { provider, envelope: undefined };
}
