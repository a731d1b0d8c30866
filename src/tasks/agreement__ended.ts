import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { agreementEnded } from "../providers/mail/signingLetters.ts";
import { openSigningProvider } from "../providers/signing/index.ts";
import { writeToSigners } from "../signing/letters.ts";

/** The agreement {id} was voided, declined or has expired: nobody is to sign it any more. Run twice: writes to each once. */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const provider = await openSigningProvider(helpers, id);
  if (provider.writesItself) await writeToSigners(helpers, id, "ended", agreementEnded);
};

export default task;
