/** Mails in the language of the recipient: every text of the service in each mail has a translation. */
import { describe, expect, test } from "@jest/globals";
import { localize } from "../../src/messages/recognize.ts";
import { money, dateTime, formatValues } from "../../src/messages/values.ts";
import * as templates from "../../src/providers/mail/mailTemplates.ts";

const expiresAt = new Date("2026-11-23T13:33:00Z");
const invitation = {
  organization: "Acme",
  invitedBy: "Ada",
  message: "Come.",
  token: "T0",
  link: "https://x/",
  expiresAt,
};
const visitor = { name: "Mira", email: "mira@example.com", phone: "+1", message: "Hello." };
const written = {
  subject: "Acme",
  body: "Acme",
  organization: "Acme",
  postalAddress: "Quay 1",
  unsubscribe: "https://x/",
};

/** Parameters of each mail, several sets if the text depends on them; user-written text is a single word. */
const samples: Record<keyof typeof templates, object[]> = {
  oneTimeCode: [{ code: "C0", expiresAt }],
  verificationCode: [{ code: "C0", link: "https://x/", expiresAt }],
  accountExists: [{}],
  newAddressCode: [{ code: "C0", link: "https://x/", expiresAt }],
  addressIsTaken: [{}],
  formerAddressCode: [
    { email: "a@example.com", code: "C0", link: "https://x/", stop: "https://y/", expiresAt },
  ],
  accountChanged: [
    "NEW_NETWORK",
    "SESSION_COPIED",
    "PASSWORD_CHANGED",
    "PASSWORD_RESET",
    "EMAIL_CHANGED",
    "EMAIL_CHANGE_STOPPED",
    "ACCESS_TOKEN_CREATED",
    "SECOND_FACTOR_ENABLED",
    "SECOND_FACTOR_DISABLED",
    "SECOND_FACTOR_GUESSED",
    "SECOND_FACTOR_RESET",
    "RECOVERY_CODE_USED",
    "RECOVERY_CODES_RENEWED",
  ].map((change) => ({
    change,
    facts: { device: "curl", name: "Robot", email: "a@example.com", left: "3", organization: "Acme" },
    network: "N0",
    at: expiresAt,
  })),
  consentRequest: ["NEWS", "MAILBOX", "RECIPIENT"].flatMap((purpose) =>
    ["Tower", null].map((project) => ({
      purpose,
      organization: "Acme",
      project,
      link: "https://x/",
      expiresAt,
    })),
  ),
  organizationInvite: ["OWNER", "ADMIN", "MEMBER"].map((role) => ({ ...invitation, role })),
  secondFactorRequired: [{ organization: "Acme", dueAt: expiresAt, link: "https://x/" }],
  secondFactorReminder: [{ organization: "Acme", dueAt: expiresAt, link: "https://x/" }],
  organizationDeletion: ["REQUESTED", "WEEK", "DAY", "CANCELLED", "COMPLETED"].map((about) => ({
    about,
    organization: "Acme",
    finalAt: expiresAt,
    by: "Olga Owner",
    link: "https://x/",
  })),
  purchaseCancelled: ["Suite", null].flatMap((home) =>
    [
      { refunded: "250.00", returned: "500.00", kept: "50.00" },
      { refunded: "0", returned: "0", kept: "0" },
    ].map((amounts) => ({ organization: "Acme", project: "Tower", home, currency: "CAD", ...amounts })),
  ),
  projectInvite: ["SELLER", "AGENCY", "BROKER", "BUILDER", "MARKETER", "LENDER", "TITLE", "VIEWER"].flatMap(
    (role) =>
      [
        { token: null, invitedOrganization: "Summit" },
        { token: "T0", invitedOrganization: null },
      ].map((to) => ({ ...invitation, id: "I0", project: "Tower", role, ...to })),
  ),
  affiliationChanged: ["ACCEPTED", "DECLINED", "CHANGED", "ENDED", "LEFT"].flatMap((what) =>
    ["BROKER", "LENDER"].map((role) => ({ what, project: "Tower", owner: "Acme", other: "Summit", role })),
  ),
  buyerInvite: [{ ...invitation, project: "Tower" }],
  organizationContacted: [{ ...visitor, organization: "Acme" }],
  serviceContacted: [visitor],
  notification: ["new leads", "appointments", "tasks", "messages of workflows"].map((heading, index) => ({
    organization: "Acme",
    kindName: heading,
    heading:
      heading === "appointments"
        ? "updates on appointments"
        : heading === "tasks"
          ? "tasks for you"
          : heading,
    isDigest: heading === "tasks",
    items: [{ line: "Bo is a new lead for Tower", details: "", quote: "Hi.", link: "https://x/" }],
    count: 2 + index,
    unsubscribe: "https://x/",
  })),
  acceptedDraft: [written],
  webhookDisabled: [{ organization: "Acme", url: "https://x/", reason: "Acme" }],
  automationsSuspended: [1, 2].map((count) => ({
    organization: "Acme",
    suspended: Array.from({ length: count }, () => ({ kind: "webhook", title: "Robot", reason: "Acme" })),
  })),
  composedMail: [true, false].map((toTeam) => ({ ...written, html: null, workflow: "W", toTeam })),
};

/**
 * The texts of the service in a mail: without quotes, codes, links and single words, which are written by
 * users.
 */
const sentences = (text: string) =>
  text
    .split("\n")
    .filter((line) => !/^(?:>|\s|https:|-- )/.test(line))
    .map((line) => line.replace(/:$/, "").trim())
    .filter((line) => line.includes(" ") && !/^[\p{L}-]+: \S+$/u.test(line));

describe("every mail", () => {
  test.each(Object.entries(samples))("%s is translated into each language", (name, made) => {
    for (const values of made) {
      const mail = (templates as Record<string, any>)[name](values) as ReturnType<
        typeof templates.oneTimeCode
      >;
      const english = new Set(sentences(mail.text));
      for (const language of ["fr", "de", "es"] as const) {
        const translated = mail.in(language);
        expect(sentences(translated.text).filter((line) => english.has(line))).toEqual([]);
        expect(new Set(sentences(translated.text)).size).toBe(english.size);
        expect(translated.subject === mail.subject).toBe(mail.subject === "Acme");
        expect(translated.html).not.toContain('lang="en"');
      }
      expect(mail.in("en")).toEqual({ subject: mail.subject, text: mail.text, html: mail.html });
      expect(mail.text).not.toMatch(/[\ue000\ue001]/);
    }
  });
});

describe("dates and amounts", () => {
  test("follow the conventions of the language", () => {
    const line = `Offer of ${money("735000.00", "CAD")} for 1005 in Tower, accepted`;
    const due = `It can be used once, until ${dateTime(expiresAt)}. Earlier codes are no longer valid.`;
    const translated = (text: string, language: "en" | "fr" | "de" | "es") =>
      formatValues(localize(text, language, "mails").message, language).replace(/[\u00a0\u202f]/g, " ");
    expect(translated(line, "en")).toBe("Offer of CAD 735,000.00 for 1005 in Tower, accepted");
    expect(translated(line, "de")).toBe("Angebot über 735.000,00 CAD für 1005 in Tower, angenommen");
    expect(translated(line, "fr")).toBe("Offre de 735 000,00 CAD pour 1005 à Tower, accepté");
    expect(translated(due, "de")).toContain("bis 23. November 2026 um 13:33 UTC");
    expect(translated(due, "es")).toContain("hasta el 23 de noviembre de 2026 a las 13:33 UTC");
    expect(formatValues(dateTime(expiresAt, "America/Toronto"), "fr")).toBe(
      "23 novembre 2026 à 08:33 (America/Toronto)",
    );
  });

  test("user-written text with markup remains text", () => {
    expect(formatValues("\ue000when|no date|Mars\ue001", "en")).not.toMatch(/[\ue000\ue001]/);
  });
});
