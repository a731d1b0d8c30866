/** A thread that writes one certificate; started and terminated by writeCertificate.ts. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import type { CertificateRequest } from "./writeCertificate.ts";

// If the system supports thread priorities, requests take precedence; elsewhere, this would apply to the whole process.
if (process.platform === "linux") setPriority(5);

const certified = workerData as CertificateRequest;
parentPort!.postMessage(
  "signatures" in certified
    ? await (await import("./certificatePages.ts")).certificatePages(certified.signatures)
    : await (await import("./erasurePages.ts")).erasurePages(certified.erasure),
);
