/** Writes certificates in threads beside the event loop, because measuring text and parsing fonts take CPU time. */
import { Worker } from "node:worker_threads";
import type { CertificateFacts } from "./certificatePages.ts";
import type { ErasureFacts } from "./erasurePages.ts";

export type { CertificateFacts } from "./certificatePages.ts";
export type { ErasureFacts } from "./erasurePages.ts";

/** The facts of the certificate to write. */
export type CertificateRequest = { signatures: CertificateFacts } | { erasure: ErasureFacts };

const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
const longestMs = 30_000;

/**
 * The certificate of an agreement as PDF.
 * @throws Error if the thread fails, or takes over 30 seconds.
 */
export const writeCertificate = (signatures: CertificateFacts): Promise<Buffer> => write({ signatures });

/**
 * The certificate of an erasure as PDF.
 * @throws Error if the thread fails, or takes over 30 seconds.
 */
export const writeErasureCertificate = (erasure: ErasureFacts): Promise<Buffer> => write({ erasure });

async function write(facts: CertificateRequest): Promise<Buffer> {
  const worker = new Worker(new URL("./certificateThread.ts", import.meta.url), {
    workerData: facts,
    resourceLimits,
    name: "plat-certificate",
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error("A certificate took too long to write.")), longestMs);
      worker.once("message", (pdf: Uint8Array) => resolve(Buffer.from(pdf)));
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("The thread of a certificate ended before its file.")));
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
