/** A thread that writes one certificate; started and terminated by writeCertificate.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../base/priority.ts";
import type { CertificateRequest } from "./writeCertificate.ts";

// Requests take precedence.
lowerPriority(10);

const certified = workerData as CertificateRequest;
parentPort!.postMessage(
  "signatures" in certified
    ? await (await import("./certificatePages.ts")).certificatePages(certified.signatures)
    : await (await import("./erasurePages.ts")).erasurePages(certified.erasure),
);
