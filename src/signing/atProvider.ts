import type { JobHelpers } from "graphile-worker";
import { ConnectionFailed } from "../integrations/adapter.ts";
import { openSigning, SigningFailed, type Signing } from "../providers/signing/index.ts";

/**
 * Does something where an agreement is signed. What went wrong with the organization's account is written down there, so that its
 * owners learn of it.
 * @throws SigningFailed for another try by the job runner; REFUSED ones are whoever calls' to deal with
 */
export async function atProvider<T>(
  helpers: JobHelpers,
  agreementId: string,
  work: (signing: Signing) => Promise<T>,
): Promise<T> {
  let integrationId: string | undefined;
  try {
    const signing = await openSigning(helpers, agreementId);
    integrationId = signing.envelope?.integrationId;
    const result = await work(signing);
    if (integrationId !== undefined) await helpers.integrations.noteSynced(integrationId).catch(() => {});
    return result;
  } catch (error) {
    if (error instanceof SigningFailed && error.kind === "SETTINGS" && integrationId !== undefined)
      await helpers.integrations.noteFailure(
        integrationId,
        new ConnectionFailed(error.message, { retryable: true, cause: error }),
      );
    throw error;
  }
}
