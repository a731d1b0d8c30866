import { writeCertificate, type CertificateFacts } from "../../pdf/writeCertificate.ts";
import type { SigningProvider } from "./provider.ts";

/**
 * The embedded default: signers follow the link of a mail from here and prove who they are by a one-time code; the database keeps
 * what they did (migrations/objects/06-deals/signing.sql), and a certificate says it on paper.
 * @param certificate gives what the certificate says; null where it is there already.
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
    // The links of the mails say so themselves.
    end: async () => {},
    remind: nothing,
  };
}
