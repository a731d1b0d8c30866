import { writeCertificate, type CertificateFacts } from "../../pdf/writeCertificate.ts";
import type { SigningProvider } from "./signingProvider.ts";

/**
 * The embedded default: signers follow the link of a mail and authenticate with a one-time code; the database records the events
 * (migrations/objects/06-deals/signing.sql), and a certificate documents them.
 * @param certificate returns the data of the certificate; null if it exists already.
 */
export function createEmbeddedSigning(certificate: () => Promise<CertificateFacts | null>): SigningProvider {
  const nothing = () => Promise.reject(new Error("An agreement that is signed here has no envelope."));
  return {
    writesItself: true,
    send: nothing,
    state: nothing,
    async proof() {
      const facts = await certificate();
      if (!facts) return [];
      const name = facts.title
        .replace(/[^\p{L}\p{N} ._-]+/gu, " ")
        .trim()
        .slice(0, 100);
      const content = await writeCertificate(facts);
      return [{ kind: "CERTIFICATE", filename: `Certificate ${name || "of signatures"}.pdf`, content }];
    },
    // The mails contain the links.
    end: async () => {},
    remind: nothing,
  };
}
