/** The files of applications, by the keys of the catalogue. */
import type { Adapter } from "../adapter.ts";
import calendarFeed from "./calendar_feed.ts";
import crmSync from "./crm_sync.ts";
import docusign from "./docusign.ts";
import mailAccount from "./mail_account.ts";
import openidAccount from "./openid_account.ts";
import openidOrganization from "./openid_organization.ts";

export const adapters: Readonly<Record<string, Adapter>> = {
  calendar_feed: calendarFeed,
  crm_sync: crmSync,
  docusign,
  mail_account: mailAccount,
  openid_account: openidAccount,
  openid_organization: openidOrganization,
};
