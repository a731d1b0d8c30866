import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import type { Integrations } from "../integrations/integrations.ts";
import { isSignedByDocusign } from "../providers/signing/docusignClient.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * POST /webhooks/signing/<agreement>: events of the electronic signature provider. The signature is verified with the
 * key of the organization's integration; unsigned requests are refused without effect. A job requests the changes.
 */
export function signingWebhook(
  integrations: Pick<Integrations, "account">,
  pool: Pick<Pool, "query">,
): RequestHandler<DatabaseValue> {
  return async (request, response) => {
    const { id } = request.params as { id: string };
    const refused = new CodedError(
      "BAD_USER_INPUT",
      "The signature is missing, or is not the signature of the provider.",
    );
    if (!uuid.test(id)) throw refused;
    const signatures = Object.entries(request.headers)
      .filter(([name]) => /^x-docusign-signature-\d{1,2}$/.test(name))
      .map(([, value]) => String(value));
    if (signatures.length === 0) throw refused;
    const { rows } = await pool.query<{ id: string | null }>(
      "select app_private.integration_of_envelope($1) as id",
      [id],
    );
    const integrationId = rows[0]!.id;
    const account =
      integrationId === null ? undefined : await integrations.account(integrationId).catch(() => undefined);
    const key = account?.credentials["webhookKey"] as string | undefined;
    if (!key || !isSignedByDocusign(request.body as Buffer, signatures, key)) throw refused;
    await pool.query("select app_private.take_envelope_notice($1)", [id]);
    response.status(200).json({ received: true });
  };
}
