/** Secrets that sign the deliveries of a webhook. */
import { SealFault, secretOfWebhook, type Seal } from "../secrets/seal.ts";

/**
 * The secrets of a webhook: the current one, and the previous one while it still signs. A previous secret that does
 * not belong to the webhook is ignored, so that rotation repairs a tampered secret.
 * @param sealed null if there is none and nothing is signed
 * @throws SealFault if the current secret cannot be opened, or the key of either is missing
 */
export function openSecrets(
  seal: Seal,
  webhookId: string | null,
  sealed: string | null,
  previousSealed: string | null,
): string[] {
  if (webhookId === null || sealed === null) return [];
  const place = secretOfWebhook(webhookId);
  const secrets = [seal.open(sealed, place)];
  if (previousSealed !== null) {
    try {
      secrets.push(seal.open(previousSealed, place));
    } catch (error) {
      if (!(error instanceof SealFault) || error.reason === "KEY") throw error;
    }
  }
  return secrets;
}
