import { money, dateTime } from "../../messages/values.ts";
import { render, type Block, type Rendered } from "./letter.ts";

/** All mails of the service, one function each, in English; src/messages/catalogue has the other languages. */

const roles: Record<string, string> = { OWNER: "an owner", ADMIN: "an administrator", MEMBER: "a member" };

/** The one-time code for a new password. */
export function oneTimeCode(values: { code: string; expiresAt: Date }): Rendered {
  return render({
    subject: "Your password reset code",
    blocks: [
      "We received a request to reset your password. Use this code to set a new one:",
      { code: values.code },
      `It can be used once, until ${dateTime(values.expiresAt)}. Earlier codes are no longer valid.`,
      "If it was not you, ignore this email: your password remains unchanged. Never share the code with anybody who asks for it.",
    ],
    footer: "You are receiving this email because a password reset was requested for this email address.",
  });
}

/** The code that confirms the address of a new account. */
export function verificationCode(values: { code: string; link: string; expiresAt: Date }): Rendered {
  return render({
    subject: "Confirm your email address",
    blocks: [
      "An account was created with this email address. If it was you, sign in to the account and confirm the address:",
      { link: values.link, label: "Confirm the address" },
      "To confirm it with the API, use verifyEmail and this code:",
      { code: values.code },
      `It can be used once, until ${dateTime(values.expiresAt)}, and only by the signed-in user of the account.`,
      "If it was not you, ignore this email: the account cannot send anything on your behalf. To take it over, reset its password.",
    ],
    footer: "You are receiving this email because somebody created an account with this email address.",
  });
}

/** To the owner of an address: somebody tried to create another account with it. */
export function accountExists(): Rendered {
  return render({
    subject: "You already have an account",
    blocks: [
      "Somebody tried to create an account with this email address. You already have one, and nothing was changed.",
      "If it was you, sign in with the password of that account, or request a code to set a new one.",
      "If it was not you, ignore this email: it was not revealed that you have an account.",
    ],
    footer:
      "You are receiving this email because somebody tried to create an account with this email address.",
  });
}

/** The code that confirms the new address of an account. */
export function newAddressCode(values: { code: string; link: string; expiresAt: Date }): Rendered {
  return render({
    subject: "Confirm your new email address",
    blocks: [
      "We received a request to use this email address for an account. If it was you, sign in to the account and confirm it:",
      { link: values.link, label: "Confirm the new address" },
      "To confirm it with the API, use confirmEmailChange and this code:",
      { code: values.code },
      `It can be used until ${dateTime(values.expiresAt)}, and only by the signed-in user of the account.`,
      "If it was not you, ignore this email: the account does not get your address.",
    ],
    footer: "You are receiving this email because somebody requested this email address for an account.",
  });
}

/** To the owner of an address: somebody tried to use it for another account. */
export function addressIsTaken(): Rendered {
  return render({
    subject: "You already have an account",
    blocks: [
      "Somebody tried to use this email address for another account. You already have an account with this address, and nothing was changed.",
      "If it was you, sign in to the account with this address, or change its address first.",
      "If it was not you, ignore this email: it was not revealed that you have an account.",
    ],
    footer: "You are receiving this email because somebody requested this email address for an account.",
  });
}

/** To the current address of an account: confirms or stops its change. */
export function formerAddressCode(values: {
  email: string;
  code: string;
  link: string;
  stop: string;
  expiresAt: Date;
}): Rendered {
  return render({
    subject: "Your email address will be changed",
    blocks: [
      `Somebody who knows your password requested another email address for your account: ${values.email}.`,
      "If it was not you, stop the change. That also ends all sessions of the account; then reset your password.",
      { link: values.stop, label: "Stop the change" },
      "If it was you, sign in to the account and confirm it:",
      { link: values.link, label: "Confirm the change" },
      "To confirm it with the API, use confirmEmailChange and this code:",
      { code: values.code },
      `It can be used until ${dateTime(values.expiresAt)}. Never share the code with anybody who asks for it.`,
    ],
    footer: "You are receiving this email because this is the email address of your account.",
  });
}

/** The change of an account, as in app_private.tell_account. */
export interface AccountChange {
  change: keyof typeof accountChanges;
  facts: { device?: string; name?: string; email?: string; left?: number; organization?: string };
  network?: string;
}

const signInOfOthers =
  "If it was not you, reset your password now: that ends all sessions and access tokens of the account.";

/** Subject, event and instructions for each change. */
const accountChanges = {
  NEW_NETWORK: () => ["Sign-in from a new network", "Somebody signed in to your account.", signInOfOthers],
  SESSION_COPIED: () => [
    "A session was ended",
    "A refresh token of your account was used a second time. Somebody may have copied it, so its session was ended: sign in again there.",
    "If you do not know why, end your other sessions (logout) and change your password.",
  ],
  PASSWORD_CHANGED: () => [
    "Your password was changed",
    "The password of your account was changed.",
    "If it was not you, reset it now, and contact us.",
  ],
  PASSWORD_RESET: () => [
    "Your password was reset",
    "The password of your account was reset with a code that was sent to this address.",
    "If it was not you, somebody has access to your mailbox: secure it, then reset the password.",
  ],
  SECOND_FACTOR_ENABLED: () => [
    "Your account now has a second factor",
    "From now on, signing in requires a code from your authenticator app. All other sessions were ended.",
    "Keep the recovery codes separate from the device with the app. If it was not you, contact us.",
  ],
  SECOND_FACTOR_DISABLED: () => [
    "The second factor was removed",
    "Signing in to your account requires only the password again.",
    "If it was not you, reset your password now, and set up a second factor again.",
  ],
  SECOND_FACTOR_RESET: ({ name, organization }: AccountChange["facts"]) => [
    "Your second factor was removed",
    `${name}, an administrator of ${organization}, removed the second factor of your account and ended all your sessions. Signing in requires only your password until you set up another one.`,
    "If you did not request this, sign in now, set up a second factor again, and ask them why.",
  ],
  SECOND_FACTOR_GUESSED: () => [
    "Wrong codes for your account",
    "Somebody who knows the password of your account entered three wrong codes of the second factor.",
    "If it was not you, change your password now.",
  ],
  RECOVERY_CODE_USED: ({ left }: AccountChange["facts"]) => [
    "A recovery code was used",
    `A recovery code was used instead of your authenticator app. ${left} are left.`,
    "If it was not you, reset your password now, and renew the recovery codes.",
  ],
  RECOVERY_CODES_RENEWED: () => [
    "Your recovery codes were renewed",
    "Your account has ten new recovery codes; the previous ones are no longer valid.",
    signInOfOthers,
  ],
  EMAIL_CHANGED: ({ email }: AccountChange["facts"]) => [
    "The email address of your account was changed",
    `The address of your account is now ${email}. Both addresses confirmed it.`,
    "If it was not you, contact us.",
  ],
  EMAIL_CHANGE_STOPPED: () => [
    "The change of your email address was stopped",
    "Somebody who knows the password of your account requested another email address for it. The link in the email that we sent here stopped that, and ended all sessions of the account.",
    "If you did not request the change, reset your password now.",
  ],
  ACCESS_TOKEN_CREATED: ({ name }: AccountChange["facts"]) => [
    "An access token was created",
    `The access token "${name}" was created for your account. Programs can use it to act on your behalf.`,
    "If it was not you, revoke it (revokeAccessToken) and change your password.",
  ],
} satisfies Record<string, (facts: AccountChange["facts"]) => [string, string, string]>;

/** To a user: their account was changed, in case it was somebody else. */
export function accountChanged({ change, facts, network, at }: AccountChange & { at: Date }): Rendered {
  const [subject, happened, advice] = accountChanges[change](facts);
  return render({
    subject,
    blocks: [
      happened!,
      {
        facts: [
          ["When", dateTime(at)],
          ["From", network ?? null],
          ["Program", facts.device ?? null],
        ],
      },
      advice!,
    ],
    footer: "You are receiving this email because it is about the security of your account.",
  });
}

/** To members without a second factor: their organization requires one. */
export function secondFactorRequired(values: { organization: string; dueAt: Date; link: string }): Rendered {
  const { organization, dueAt, link } = values;
  return render({
    subject: `${organization} requires a second factor`,
    blocks: [
      `${organization} requires a second factor of its members, and your account has none.`,
      `Set one up by ${dateTime(dueAt)}: an authenticator app on your phone. After that, you cannot see data of ${organization} without one.`,
      { link, label: "Set up a second factor" },
      "With the API, use enrollSecondFactor and confirmSecondFactor.",
    ],
    footer: `You are receiving this email because you are a member of ${organization}.`,
  });
}

/** To members without a second factor: their organization refuses them from the next day on. */
export function secondFactorReminder(values: { organization: string; dueAt: Date; link: string }): Rendered {
  const { organization, dueAt, link } = values;
  return render({
    subject: `${organization}: one day left to set up a second factor`,
    blocks: [
      `${organization} requires a second factor of its members, and your account has none.`,
      `From ${dateTime(dueAt)} on, you cannot see data of ${organization} without one: an authenticator app on your phone.`,
      { link, label: "Set up a second factor" },
      "With the API, use enrollSecondFactor and confirmSecondFactor.",
    ],
    footer: `You are receiving this email because you are a member of ${organization}.`,
  });
}

/** The stages of the deletion of an organization. */
export type DeletionNotice = "REQUESTED" | "WEEK" | "DAY" | "CANCELLED" | "COMPLETED";

/** To the owners of an organization: its deletion was requested, cancelled or completed. */
export function organizationDeletion(values: {
  about: DeletionNotice;
  organization: string;
  finalAt: Date;
  /** Who requested or cancelled it; null if it was the service, or the user no longer exists. */
  by: string | null;
  link: string;
}): Rendered {
  const { about, organization, finalAt, by, link } = values;
  const footer = `You are receiving this email because you own ${organization}.`;
  if (about === "CANCELLED")
    return render({
      subject: `${organization} will not be deleted`,
      blocks: [
        `The deletion of ${organization} was cancelled. Nothing changes.`,
        { facts: [["Cancelled by", by]] },
      ],
      footer,
    });
  if (about === "COMPLETED")
    return render({
      subject: `${organization} was deleted`,
      blocks: [
        `${organization} was deleted with all its data. Contracts and payments are kept for as long as the law requires.`,
        "The person who requested it finds the certificate among their deletions of organizations after signing in.",
      ],
      footer,
    });
  const subjects = {
    REQUESTED: `${organization} will be deleted`,
    WEEK: `${organization} will be deleted within a week`,
    DAY: `${organization} will be deleted within a day`,
  };
  return render({
    subject: subjects[about],
    blocks: [
      `After ${dateTime(finalAt)}, ${organization} will be permanently deleted with all its data. Until then, each of its owners can cancel the deletion.`,
      { facts: [["Requested by", by]] },
      { link, label: "View or cancel it" },
      "To cancel it with the API, use cancelOrganizationDeletion. Export the data that you need beforehand, with exportOrganization.",
    ],
    footer,
  });
}

/** Asks the owner of an address for consent to the use for which it was entered. */
export function consentRequest(values: {
  purpose: "NEWS" | "MAILBOX" | "RECIPIENT";
  organization: string;
  project: string | null;
  link: string;
  expiresAt: Date;
}): Rendered {
  const { purpose, organization, project, link, expiresAt } = values;
  const { subject, question, label } = {
    NEWS: {
      subject: `Do you want to receive news from ${organization}?`,
      question: `Somebody with this email address contacted ${organization}${project ? ` about ${project}` : ""} and asked for news by email.`,
      label: "Yes, send me news",
    },
    MAILBOX: {
      subject: `Enquiries to ${organization}`,
      question: `${organization} entered this email address for enquiries. Messages from visitors will be forwarded here.`,
      label: "Yes, forward enquiries",
    },
    RECIPIENT: {
      subject: `May ${organization} write to you?`,
      question: `${organization} wants to send emails to this address.`,
      label: "Yes, they may",
    },
  }[purpose];
  return render({
    subject,
    blocks: [
      question,
      { link, label },
      `The link can be used until ${dateTime(expiresAt)}. Unless you use it, nothing is sent to you.`,
      "If it was not you, ignore this email.",
    ],
    footer:
      "You are receiving this email because somebody entered this email address. You are asked at most once a day.",
  });
}

interface Invitation {
  organization: string;
  invitedBy: string | null;
  message: string | null;
  token: string;
  link: string;
  expiresAt: Date;
}

/** The common part of invitations: what is offered, and how to accept in a browser and with the API. */
const invitation = (
  { message, token, link, expiresAt }: Invitation,
  offer: string,
  label: string,
  operation: string,
): Block[] => [
  offer,
  ...(message ? [{ quote: message }] : []),
  { link, label },
  `Sign in to the account with this email address, or create one first. To accept with the API, use ${operation} and this token:`,
  { code: token },
  `The invitation can be used once, until ${dateTime(expiresAt)}.`,
];

/** The invitation to join an organization. */
export function organizationInvite(values: Invitation & { role: string }): Rendered {
  const { organization, invitedBy, role } = values;
  return render({
    subject: `Invitation to join ${organization}`,
    blocks: invitation(
      values,
      `${invitedBy ?? organization} invites you to join ${organization} as ${roles[role] ?? "a member"}.`,
      "Accept the invitation",
      "acceptOrganizationInvite",
    ),
    footer: `You are receiving this email because somebody at ${organization} entered this email address. If you do not know them, ignore it.`,
  });
}

/** The invitation of a buyer to follow their purchase. */
export function buyerInvite(values: Invitation & { project: string }): Rendered {
  const { organization, invitedBy, project } = values;
  return render({
    subject: `Your home in ${project}`,
    blocks: invitation(
      values,
      `${invitedBy ?? organization} invites you to follow the purchase of your home in ${project} online.`,
      "See your purchase",
      "acceptBuyerInvite",
    ),
    footer: `You are receiving this email because ${organization} entered this email address for a purchase. If you do not know them, ignore it.`,
  });
}

/** The mail about a cancelled purchase; amounts are decimal numbers as strings. */
export interface CancelledPurchase {
  organization: string;
  project: string;
  /** The unit or lot; null if there is none. */
  home: string | null;
  currency: string;
  /** Refunds to cards. */
  refunded: string;
  /** Amounts returned in another way. */
  returned: string;
  /** Amounts kept by the seller. */
  kept: string;
}

/** To buyers: their purchase was cancelled. The reason is only for the sales team. */
export function purchaseCancelled(values: CancelledPurchase): Rendered {
  const { organization, project, home, currency, refunded, returned, kept } = values;
  const amount = (value: string) => (Number(value) > 0 ? money(value, currency) : null);
  const facts: [string, string | null][] = [
    ["Refunded to your card", amount(refunded)],
    ["Returned to you in another way", amount(returned)],
    ["Kept by the seller", amount(kept)],
  ];
  return render({
    subject: home
      ? `Your purchase of ${home} in ${project} was cancelled`
      : `Your purchase in ${project} was cancelled`,
    blocks: [
      home
        ? `Your purchase of ${home} in ${project} was cancelled by ${organization}.`
        : `Your purchase in ${project} was cancelled by ${organization}.`,
      ...(facts.some(([, value]) => value)
        ? ["This happens to your payments:", { facts }]
        : ["You have not paid anything, so there is nothing to return."]),
      ...(Number(refunded) > 0 ? ["Your bank may take some days to process a refund to a card."] : []),
      `If you have questions, ask ${organization}.`,
    ],
    footer: `You are receiving this email because ${organization} entered this email address for a purchase.`,
  });
}

/** The role of an organization in a project, in words. */
const parts: Record<string, string> = {
  SELLER: "sell homes",
  AGENCY: "bring buyers as an agency",
  BROKER: "bring buyers as a broker",
  BUILDER: "build",
  MARKETER: "do the marketing",
  LENDER: "finance buyers",
  TITLE: "close purchases",
  VIEWER: "look on",
};
/** Roles whose members can be assigned leads. */
const sellers = ["SELLER", "AGENCY", "BROKER"];
const partIn = (role: string, project: string): string => `${parts[role] ?? "take part"} in ${project}`;

/** Invites an organization to a project: an address with a token, or an existing organization. */
export function projectInvite(
  values: Omit<Invitation, "token"> & {
    id: string;
    token: string | null;
    project: string;
    role: string;
    invitedOrganization: string | null;
  },
): Rendered {
  const { id, token, organization, invitedBy, invitedOrganization, project, role, link, message, expiresAt } =
    values;
  const offer = `${invitedBy ? `${invitedBy} of ${organization}` : organization} invites ${invitedOrganization ?? "your organization"} to ${partIn(role, project)}.`;
  return render({
    subject: `${organization} invites you to ${project}`,
    blocks: token
      ? [
          ...invitation({ ...values, token }, offer, "See the invitation", "acceptProjectOrganizationInvite"),
          "Specify the organization that accepts; create one first if necessary.",
        ]
      : [
          offer,
          ...(message ? [{ quote: message }] : []),
          { link, label: "See the invitation" },
          "An owner or administrator accepts or declines. To answer with the API, use acceptProjectOrganizationInvite or declineProjectOrganizationInvite and this id:",
          { code: id },
          `It can be accepted until ${dateTime(expiresAt)}. Until then, neither organization sees data of the other.`,
        ],
    footer: token
      ? `You are receiving this email because somebody at ${organization} entered this email address. If you do not know them, ignore it.`
      : `You are receiving this email because you administer ${invitedOrganization ?? "the invited organization"}.`,
  });
}

/** A change of an organization's participation in a project, for the other side. */
export function affiliationChanged(values: {
  what: "ACCEPTED" | "DECLINED" | "CHANGED" | "ENDED" | "LEFT";
  project: string;
  owner: string;
  /** The name of the other organization, or the invited address. */
  other: string;
  role: string;
}): Rendered {
  const { what, project, owner, other, role } = values;
  const { subject, sentences, toOwner } = {
    ACCEPTED: {
      subject: `${other} takes part in ${project}`,
      sentences: [
        `${other} has accepted the invitation to ${partIn(role, project)}.`,
        ...(sellers.includes(role) ? ["You can now assign leads to its members."] : []),
      ],
      toOwner: true,
    },
    DECLINED: {
      subject: `${other} declined the invitation to ${project}`,
      sentences: [`${other} has declined the invitation to ${partIn(role, project)}.`],
      toOwner: true,
    },
    CHANGED: {
      subject: `What ${other} may do in ${project}`,
      sentences: [
        `${owner} has changed what ${other} may do in ${project}. Its role is to ${parts[role] ?? "take part"}.`,
      ],
      toOwner: false,
    },
    ENDED: {
      subject: `The participation of ${other} in ${project} has ended`,
      sentences: [
        `${owner} has ended the participation of ${other} in ${project}. Its members no longer see the project; open records have been handed over.`,
      ],
      toOwner: false,
    },
    LEFT: {
      subject: `${other} has left ${project}`,
      sentences: [
        `${other} has ended its participation in ${project}. Open records of its members have been handed over: assign those without an assignee.`,
      ],
      toOwner: true,
    },
  }[what];
  return render({
    subject,
    blocks: sentences,
    footer: `You are receiving this email because you own or administer ${toOwner ? owner : other}.`,
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
    ["Email", email],
    ["Phone", phone],
  ] as [string, string | null][],
});

const quoted = ({ message }: VisitorMessage) => (message ? [{ quote: message }] : []);

/** A visitor's message to an organization. */
export function organizationContacted(values: VisitorMessage & { organization: string }): Rendered {
  return render({
    subject: `Message from ${values.name} to ${values.organization}`,
    blocks: [
      `A visitor sent a message to ${values.organization}:`,
      ...quoted(values),
      visitor(values),
      "Reply to this email to answer.",
    ],
    footer: `You are receiving this email because this is the address for enquiries of ${values.organization}, or you own it.`,
  });
}

/** A message to the operator of the service. */
export function serviceContacted(values: VisitorMessage): Rendered {
  return render({
    subject: `Message from ${values.name} to the service`,
    blocks: [
      "Somebody sent a message to the operator of the service:",
      ...quoted(values),
      visitor(values),
      "Reply to this email to answer.",
    ],
    footer: "You are receiving this email because this is the operator's address.",
  });
}

/** A notification mail for a member: one item, or several of a kind. */
export function notification(values: {
  organization: string;
  /** Continues "mails about" and "3". */
  kindName: string;
  heading: string;
  isDigest: boolean;
  items: readonly { line: string; details: string; quote: string; link: string }[];
  /** The total number; items beyond those listed are only counted. */
  count: number;
  unsubscribe: string;
}): Rendered {
  const { organization, kindName, heading, isDigest, items, count, unsubscribe } = values;
  const [first] = items;
  const several = isDigest
    ? `Your tasks at ${organization} for today: ${count}`
    : `${count} ${heading} at ${organization}`;
  const more = count - items.length;
  return render({
    subject: count === 1 && !isDigest && first ? first.line : several,
    blocks: [
      ...items.flatMap(({ line, details, quote, link }) => [
        { link, label: line },
        ...(details ? [details] : []),
        ...(quote ? [{ quote: count === 1 ? quote : shortened(quote) }] : []),
      ]),
      ...(more > 0 ? [`And ${more} more.`] : []),
      { link: unsubscribe, label: `No more emails about ${kindName} from ${organization}` },
    ],
    footer: `You are receiving this email because emails about ${kindName} are turned on for you at ${organization}.`,
  });
}

const shortened = (text: string, length = 300) => (text.length > length ? `${text.slice(0, length)}…` : text);

/** A mail that an organization writes to people. */
interface Written {
  subject: string;
  body: string;
  organization: string;
  /** The address of the organization, on one line. */
  postalAddress: string | null;
  /** The URL at which such mails are stopped. */
  unsubscribe?: string | undefined;
}

/** The footer names the sender and, for marketing mails, an unsubscribe link, as required by law in many countries. */
const written = ({ body, organization, postalAddress, unsubscribe }: Written, why: string) => ({
  blocks: body.split(/\n{2,}/).map((text) => ({ text })),
  ...(unsubscribe && {
    closing: [{ link: unsubscribe, label: `Unsubscribe from marketing emails of ${organization}` }],
  }),
  footer: [why, [organization, postalAddress].filter(Boolean).join(", ")],
});

/** A draft that a person of the sales team has reviewed and sends. */
export function acceptedDraft(values: Written): Rendered {
  return render({
    subject: values.subject,
    ...written(values, `You are receiving this email because you are in touch with ${values.organization}.`),
  });
}

/** To the owners: a webhook was disabled after failures. */
export function webhookDisabled(values: { organization: string; url: string; reason: string }): Rendered {
  const { organization, url, reason } = values;
  return render({
    subject: `A webhook of ${organization} was disabled`,
    blocks: [
      `Events of ${organization} are no longer sent to this URL:`,
      { code: url },
      reason,
      "Once the receiver works again, enable the webhook with updateWebhook and resend the missed events with redeliverEvents.",
    ],
    footer: `You are receiving this email because you own ${organization}.`,
  });
}

/** The suspended items, as in app_private.tell_suspended. */
export interface Suspended {
  /** The kind in words: webhook, workflow, integration, invitation … */
  kind: string;
  title: string;
  reason: string;
}

/** To the owners: automations were suspended because their principal lost the required permissions. */
export function automationsSuspended(values: { organization: string; suspended: Suspended[] }): Rendered {
  const { organization, suspended } = values;
  return render({
    subject: `${suspended.length === 1 ? "An item" : `${suspended.length} items`} of ${organization} ${suspended.length === 1 ? "was" : "were"} stopped`,
    blocks: [
      `These act on behalf of the person who created them, who no longer has the required permissions, so they were stopped:`,
      ...suspended.map(({ kind, title, reason }) => `The ${kind} "${title}". ${reason}`),
      "Enable what you still need (updateWebhook, enableWorkflow, refreshOrganizationIntegration), or invite again; it then acts on your behalf.",
    ],
    footer: `You are receiving this email because you own ${organization}.`,
  });
}

/** A mail of a workflow: the organization's own text, to a person or to its team. */
export function composedMail(
  values: Written & { html: string | null; workflow: string; toTeam: boolean },
): Rendered {
  const { subject, html, organization, workflow, toTeam } = values;
  return render({
    subject,
    html,
    ...written(
      values,
      toTeam
        ? `You are receiving this email because the workflow "${workflow}" of ${organization} notifies its team.`
        : `You are receiving this email because you are a contact of ${organization}.`,
    ),
  });
}
