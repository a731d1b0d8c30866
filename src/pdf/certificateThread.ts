/** A thread that writes one certificate; started and ended by certificate.ts. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import type { Certified } from "./writeCertificate.ts";

// Where the system has priorities of threads, answers to requests go first; elsewhere this would hold for the whole process.
if (process.platform === "linux") setPriority(5);

const certified = workerData as Certified;
parentPort!.postMessage(
  "signatures" in certified
    ? await (await import("./certificatePages.ts")).certificatePages(certified.signatures)
    : await (await import("./erasurePages.ts")).erasurePages(certified.erasure),
);
