/** Trusts certificates that no authority has signed, such as that of a service on this machine. */
import { X509Certificate } from "node:crypto";
import * as tls from "node:tls";
import { UsageError } from "./command.ts";

/** Trusts these certificates in addition to those of the system, for all requests of this process. */
export function trust(pem: string): void {
  if (!("setDefaultCACertificates" in tls))
    throw new UsageError(
      "This version of Node cannot trust a certificate by itself: set NODE_EXTRA_CA_CERTS to its file, or use Node 24.5 or later.",
    );
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), pem]);
}

/** The certificate of a service, without verifying it. */
export async function shownCertificate(url: string): Promise<X509Certificate> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return new Promise((done, fail) => {
    const socket = tls.connect({
      host,
      port: Number(port || 443),
      // Only for host names: SNI does not permit IP addresses.
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      rejectUnauthorized: false,
      timeout: 10_000,
    });
    socket
      .once("secureConnect", () => {
        const certificate = socket.getPeerX509Certificate();
        socket.destroy();
        if (certificate) done(certificate);
        else fail(new Error("The service shows no certificate."));
      })
      .once("timeout", () => socket.destroy(new Error("The service did not answer in time.")))
      .once("error", fail);
  });
}
