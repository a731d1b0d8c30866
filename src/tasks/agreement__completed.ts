import type { JobHelpers, Task } from "graphile-worker";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { idOf } from "../jobs/payload.ts";
import { agreementCompleted } from "../providers/mail/signingLetters.ts";
import type { Proof } from "../providers/signing/index.ts";
import { callProvider } from "../signing/callProvider.ts";
import { mailSigners } from "../signing/signingMails.ts";

/**
 * Stores the proof of the agreement {id}, which everybody has signed, and mails a link to it to everybody. Idempotent:
 * stores one file of each kind, and mails each recipient once.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  await callProvider(helpers, id, async ({ provider, envelope }) => {
    for (const proof of await provider.proof(envelope?.envelopeId ?? undefined))
      await keep(helpers, id, proof);
    if (provider.writesItself) await mailSigners(helpers, id, "completed", agreementCompleted);
  });
};

async function keep(helpers: JobHelpers, id: string, { kind, filename, content }: Proof): Promise<void> {
  const { query, fileStore } = helpers;
  const checksum = createHash("sha256").update(content).digest("hex");
  const size = content.length;
  const { rows } = await query<{ stored: boolean }>(
    "select app_private.announce_agreement_file($1, $2, $3) as stored",
    [id, checksum, size],
  );
  if (!rows[0]!.stored)
    await fileStore.put(checksum, Readable.from([content]), { size, type: "application/pdf" });
  const { rows: forgotten } = await query<{ key: string }>(
    "select app_private.keep_agreement_file($1, $2, $3, $4) as key",
    [id, kind, checksum, filename],
  );
  if (forgotten.length > 0) await fileStore.delete(forgotten.map(({ key }) => key));
}

export default task;
