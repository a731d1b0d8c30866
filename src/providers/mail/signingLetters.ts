import { dateTime } from "../../messages/values.ts";
import { render, type Rendered } from "./letter.ts";

/** Mails to the signers of agreements. */

interface OfAgreement {
  name: string;
  title: string;
  organization: string;
  project: string;
}

const why = ({ organization }: Pick<OfAgreement, "organization">): string =>
  `You are receiving this email because ${organization} entered this email address for a signer. If you do not know them, ignore it.`;

/** Asks a signer to sign, or reminds them. */
export function signingInvitation(
  values: OfAgreement & { link: string; token: string; expiresAt: Date | null; isReminder: boolean },
): Rendered {
  const { name, title, organization, project, link, token, expiresAt, isReminder } = values;
  return render({
    subject: isReminder ? `Reminder: please sign: ${title}` : `Please sign: ${title}`,
    blocks: [
      `${name}, ${organization} asks you to sign "${title}" for ${project}.`,
      { link, label: "Read and sign" },
      "Read it first. To sign or decline, request a code.",
      ...(expiresAt ? [`It can be signed until ${dateTime(expiresAt)}.`] : []),
      "The link is personal: do not share it. To sign with the API, use signAgreement and this token:",
      { code: token },
    ],
    footer: why(values),
  });
}

/** The code that signing and declining require. */
export function signingCode(values: {
  code: string;
  title: string;
  organization: string;
  expiresAt: Date;
}): Rendered {
  const { code, title, organization, expiresAt } = values;
  return render({
    subject: `Your code to sign: ${title}`,
    blocks: [
      `Use this code to sign or decline "${title}" of ${organization}:`,
      { code },
      `It can be used once, until ${dateTime(expiresAt)}. Earlier codes are no longer valid.`,
      "If you did not request it, ignore this email. Never share the code with anybody who asks for it.",
    ],
    footer: why(values),
  });
}

/** To everybody who signed: where the signed document can be downloaded. */
export function agreementCompleted(values: OfAgreement & { link: string }): Rendered {
  const { name, title, organization, link } = values;
  return render({
    subject: `Signed by everybody: ${title}`,
    blocks: [
      `${name}, everybody has signed "${title}" of ${organization}.`,
      { link, label: "Download the signed document" },
      "The page has the document and the certificate that states who signed it, when and from where. The link works for 90 days.",
    ],
    footer: why(values),
  });
}

/** To everybody who was asked: the agreement no longer needs signatures. */
export function agreementEnded(
  values: OfAgreement & { agreementStatus: string; reason: string | null },
): Rendered {
  const { name, title, organization, agreementStatus, reason } = values;
  const what =
    agreementStatus === "DECLINED"
      ? `${name}, "${title}" was declined by a signer. You no longer need to sign it.`
      : agreementStatus === "EXPIRED"
        ? `${name}, "${title}" was not signed in time. You no longer need to sign it.`
        : `${name}, "${title}" was withdrawn. You no longer need to sign it.`;
  return render({
    subject: `Signature no longer required: ${title}`,
    blocks: [what, ...(reason ? [`${organization} gives this reason:`, { quote: reason }] : [])],
    footer: why(values),
  });
}
