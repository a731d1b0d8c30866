import type { JobHelpers } from "graphile-worker";
import { ConnectionFailed } from "../integrations/adapter.ts";
import { openSigning, SigningFailed, type Signing } from "../providers/signing/index.ts";

/**
 * Calls the signing provider of an agreement. Failures of the organization's account are recorded there, so that its owners notice.
 * @throws SigningFailed to be retried by the job runner; callers handle REFUSED
 */
export async function callProvider<T>(
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
