/** What a webhook signs with. */
import { SealFault, secretOfWebhook, type Seal } from "../secrets/seal.ts";

/**
 * The secrets of a webhook: the present one, and the former one while it still signs too. A former one that is not the webhook's own
 * does not sign, so that rotating a secret mends what somebody did to it.
 * @param sealed null: none, so that nothing is signed
 * @throws SealFault where the present one does not open, or the key of either is missing
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
