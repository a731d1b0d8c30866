import { when } from "../../messages/values.ts";
import { render, type Rendered } from "./letter.ts";

/** What the service writes to those who sign agreements. */

interface OfAgreement {
  name: string;
  title: string;
  organization: string;
  project: string;
}

const why = ({ organization }: Pick<OfAgreement, "organization">): string =>
  `You get this mail because ${organization} named this email address as that of somebody who signs. If you do not know them, ignore it.`;

/** Asks somebody to sign, for the first time or once more. */
export function signingInvitation(
  values: OfAgreement & { link: string; token: string; expiresAt: Date | null; isReminder: boolean },
): Rendered {
  const { name, title, organization, project, link, token, expiresAt, isReminder } = values;
  return render({
    subject: isReminder ? `Reminder: please sign: ${title}` : `Please sign: ${title}`,
    blocks: [
      `${name}, ${organization} asks you to sign "${title}" for ${project}.`,
      { link, label: "Read and sign" },
      "You read it first. To sign, or to decline, you have a code sent to you.",
      ...(expiresAt ? [`It can be signed until ${when(expiresAt)}.`] : []),
      "The link is yours alone: do not pass it on. A program signs with signAgreement and this token:",
      { code: token },
    ],
    footer: why(values),
  });
}

/** The code that signing and declining take. */
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
      `This is the code to sign, or to decline, "${title}" of ${organization}:`,
      { code },
      `It works once, until ${when(expiresAt)}. A code that was sent before no longer works.`,
      "If you did not ask for it, do nothing. Never give the code to anybody who asks for it.",
    ],
    footer: why(values),
  });
}

/** To everybody who signed: where what was signed can be saved. */
export function agreementCompleted(values: OfAgreement & { link: string }): Rendered {
  const { name, title, organization, link } = values;
  return render({
    subject: `Signed by all: ${title}`,
    blocks: [
      `${name}, all have signed "${title}" of ${organization}.`,
      { link, label: "Save what was signed" },
      "There you find the document and the certificate that says who signed it, when and from where. The link works for 90 days.",
    ],
    footer: why(values),
  });
}

/** To everybody who was asked: there is nothing to sign any more. */
export function agreementEnded(
  values: OfAgreement & { agreementStatus: string; reason: string | null },
): Rendered {
  const { name, title, organization, agreementStatus, reason } = values;
  const what =
    agreementStatus === "DECLINED"
      ? `${name}, "${title}" was declined by one of its signers. There is nothing for you to sign any more.`
      : agreementStatus === "EXPIRED"
        ? `${name}, "${title}" was not signed in time. There is nothing for you to sign any more.`
        : `${name}, "${title}" was withdrawn. There is nothing for you to sign any more.`;
  return render({
    subject: `No longer to sign: ${title}`,
    blocks: [what, ...(reason ? [`${organization} says why:`, { quote: reason }] : [])],
    footer: why(values),
  });
}
