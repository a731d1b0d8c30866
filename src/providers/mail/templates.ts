import { render, type Rendered } from "./letter.ts";

/** All texts that the service sends, one function each. */

const when = (date: Date): string =>
  `${date.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short", timeZone: "UTC" })} UTC`;

const roles: Record<string, string> = { OWNER: "an owner", ADMIN: "an administrator", MEMBER: "a member" };

/** The one-time code for a new password. */
export function oneTimeCode(values: { code: string; expiresAt: Date }): Rendered {
  return render({
    subject: "Your code for a new password",
    blocks: [
      "Somebody, hopefully you, asked for a new password. This is the code to set it:",
      { code: values.code },
      `It works once, until ${when(values.expiresAt)}. A code that was sent before no longer works.`,
      "If it was not you, there is nothing to do: your password stays as it is. Never give the code to anybody who asks for it.",
    ],
    footer: "You get this mail because a new password was asked for with this e-mail address.",
  });
}

/** The invitation to join an organization. */
export function organizationInvite(values: {
  organization: string;
  invitedBy: string | null;
  role: string;
  message: string | null;
  token: string;
  link: string;
  expiresAt: Date;
}): Rendered {
  const { organization, invitedBy, role, message, token, link, expiresAt } = values;
  return render({
    subject: `Invitation to join ${organization}`,
    blocks: [
      `${invitedBy ?? organization} invites you to join ${organization} as ${roles[role] ?? "a member"}.`,
      ...(message ? [{ quote: message }] : []),
      { link, label: "Accept the invitation" },
      "Sign in with the account of this e-mail address, or create one first. A program accepts with acceptOrganizationInvite and this token:",
      { code: token },
      `The invitation works once, until ${when(expiresAt)}.`,
    ],
    footer: `You get this mail because somebody at ${organization} entered this e-mail address. If you do not know them, ignore it.`,
  });
}

/** The invitation of a buyer to follow their purchase. */
export function buyerInvite(values: {
  project: string;
  organization: string;
  invitedBy: string | null;
  message: string | null;
  token: string;
  link: string;
  expiresAt: Date;
}): Rendered {
  const { project, organization, invitedBy, message, token, link, expiresAt } = values;
  return render({
    subject: `Your home in ${project}`,
    blocks: [
      `${invitedBy ?? organization} invites you to follow the purchase of your home in ${project} online.`,
      ...(message ? [{ quote: message }] : []),
      { link, label: "See your purchase" },
      "Sign in with the account of this e-mail address, or create one first. A program accepts with acceptBuyerInvite and this token:",
      { code: token },
      `The invitation works once, until ${when(expiresAt)}.`,
    ],
    footer: `You get this mail because ${organization} entered this e-mail address with a purchase. If you do not know them, ignore it.`,
  });
}

export interface VisitorMessage {
  name: string;
  email: string;
  phone: string | null;
  message: string | null;
}

const visitor = ({ name, email, phone }: VisitorMessage) => ({
  facts: [
    ["Name", name],
    ["E-mail", email],
    ["Phone", phone],
  ] as [string, string | null][],
});

const said = ({ message }: VisitorMessage) => (message ? [{ quote: message }] : []);

/** A visitor's message to an organization. */
export function organizationContacted(values: VisitorMessage & { organization: string }): Rendered {
  return render({
    subject: `Message from ${values.name} to ${values.organization}`,
    blocks: [
      `A visitor wrote to ${values.organization}:`,
      ...said(values),
      visitor(values),
      "Reply to this mail to answer.",
    ],
    footer: `You get this mail because it is the address for enquiries of ${values.organization}, or you own it.`,
  });
}

/** A message to the operator of the service. */
export function serviceContacted(values: VisitorMessage): Rendered {
  return render({
    subject: `Message from ${values.name} to the service`,
    blocks: [
      "Somebody wrote to the operator of the service:",
      ...said(values),
      visitor(values),
      "Reply to this mail to answer.",
    ],
    footer: "You get this mail because this is the operator's address.",
  });
}

/** A visitor's message to the sales office of a project. */
export function projectContacted(
  values: VisitorMessage & { project: string; organization: string; leadCreated: boolean },
): Rendered {
  const { name, project, organization, leadCreated } = values;
  return render({
    subject: leadCreated ? `New lead for ${project}: ${name}` : `${name} wrote to ${project} again`,
    blocks: [
      leadCreated
        ? `A visitor wrote to the sales office of ${project} and is a new lead:`
        : `Somebody who is a lead already wrote to the sales office of ${project}:`,
      ...said(values),
      visitor(values),
      "Reply to this mail to answer.",
    ],
    footer: `You get this mail because notifications of contact messages or new leads are on for you in ${organization}. Switch them off with updateOrganizationNotifications.`,
  });
}

/** A draft that a person of the sales team has read and sends. */
export function acceptedDraft(values: { subject: string; body: string; organization: string }): Rendered {
  const { subject, body, organization } = values;
  return render({
    subject,
    blocks: body.split(/\n{2,}/).map((text) => ({ text })),
    footer: `You get this mail because you are in touch with ${organization}. To hear no more, answer it and say so.`,
  });
}

/** To the owners: a webhook takes nothing any more. */
export function webhookDisabled(values: { organization: string; url: string; reason: string }): Rendered {
  const { organization, url, reason } = values;
  return render({
    subject: `A webhook of ${organization} was disabled`,
    blocks: [
      `Events of ${organization} are no longer sent to this address:`,
      { code: url },
      reason,
      "Once the receiver works again, enable the webhook with updateWebhook and have what it missed sent with redeliverEvents.",
    ],
    footer: `You get this mail because you own ${organization}.`,
  });
}
