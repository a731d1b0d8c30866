/** A thread that writes one certificate; started and ended by certificate.ts. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { certificatePages, type CertificateFacts } from "./certificatePages.ts";

// Where the system has priorities of threads, answers to requests go first; elsewhere this would hold for the whole process.
if (process.platform === "linux") setPriority(5);

parentPort!.postMessage(await certificatePages(workerData as CertificateFacts));
