import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { agreementEnded } from "../providers/mail/signingLetters.ts";
import { callProvider } from "../signing/callProvider.ts";
import { mailSigners } from "../signing/signingMails.ts";

/**
 * Cancels the agreement {id}, which was voided, declined or has expired, for its signers, here or at its provider.
 * Idempotent: mails each signer once.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  await callProvider(helpers, id, async ({ provider, envelope }) => {
    if (provider.writesItself) await mailSigners(helpers, id, "ended", agreementEnded);
    if (!envelope?.envelopeId) return;
    const { rows } = await helpers.query<{ reason: string }>(
      "select app_private.end_of_agreement($1) as reason",
      [id],
    );
    await provider.end(envelope.envelopeId, rows[0]!.reason);
  });
};

export default task;
