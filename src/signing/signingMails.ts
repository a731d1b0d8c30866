import type { JobHelpers } from "graphile-worker";
import { deliverWithinQuota } from "../jobs/deliver.ts";
import type { Rendered } from "../providers/mail/letter.ts";

/** Row of app_private.agreement_recipients. */
interface Recipient {
  signer_id: string;
  token: string;
  email: string;
  name: string;
  title: string;
  agreement_status: string;
  organization_id: string;
  organization_name: string;
  project_title: string;
  reason: string | null;
}

interface Letter {
  name: string;
  title: string;
  organization: string;
  project: string;
  link: string;
  agreementStatus: string;
  reason: string | null;
}

/**
 * Mails each signer of an agreement who was asked, once for each `kind` of letter.
 * @throws the first failure, or if the quota does not allow some, after all were tried; the job is retried then.
 */
export async function mailSigners(
  helpers: JobHelpers,
  agreementId: string,
  kind: string,
  letter: (values: Letter) => Rendered,
): Promise<void> {
  const { rows } = await helpers.query<Recipient>("select * from app_private.agreement_recipients($1)", [
    agreementId,
  ]);
  const failures: unknown[] = [];
  for (const row of rows)
    try {
      const wait = await deliverWithinQuota(helpers, row.organization_id, row.email, {
        key: `agreement ${kind} ${row.signer_id}`,
        ...letter({
          name: row.name,
          title: row.title,
          organization: row.organization_name,
          project: row.project_title,
          link: `${helpers.serviceUrl}/sign/${row.token}`,
          agreementStatus: row.agreement_status,
          reason: row.reason,
        }),
      });
      if (wait > 0) throw new Error(`There is no room for a mail to a signer for ${wait} s.`);
    } catch (error) {
      failures.push(error);
    }
  if (failures.length > 0) throw failures[0];
}
