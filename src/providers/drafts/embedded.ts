import { letters, type Letter } from "./letterTexts.ts";
import { purposeOf, type Purpose } from "./purposes.ts";
import type { DraftProvider, DraftRequest, Fact, WrittenDraft } from "./provider.ts";

/** Composes a mail from the facts alone: nothing is invented, nobody is asked. */
export function createEmbedded(): DraftProvider {
  return { name: "EMBEDDED", write: async (request) => compose(request) };
}

/** Which parts a mail has beside its first and last lines, and in which order, by what it is for. */
const contents = {
  GENERAL: ["units", "openHouse", "promotion", "office", "website"],
  VISIT: ["units", "openHouse", "promotion", "office", "website"],
  OPEN_HOUSE: ["openHouse", "office", "units", "website"],
  PROMOTION: ["promotion", "units", "website"],
  FOLLOW_UP: ["units", "website"],
  HOMES: ["units", "website"],
  APPOINTMENT: ["office"],
} as const;

/** What a purpose is about, and what to say where there is none. */
const missing: Partial<
  Record<Purpose, { fact: [subjectType: string, field: string, more?: Partial<Fact>]; warning: string }>
> = {
  OPEN_HOUSE: { fact: ["open_house", "startsAt"], warning: "There is no open house to invite to." },
  PROMOTION: { fact: ["promotion", "title"], warning: "There is no promotion at present." },
  APPOINTMENT: {
    fact: ["appointment", "startsAt", { when: "next" }],
    warning: "The lead has no appointment ahead.",
  },
};

function subjectOf(letter: Letter, purpose: Purpose | undefined, isExpected: boolean) {
  if (purpose === "OPEN_HOUSE" || purpose === "PROMOTION" || purpose === "FOLLOW_UP")
    return letter.subjectOf[purpose];
  if (isExpected) return letter.subjectAppointment;
  return purpose === "VISIT" ? letter.subjectOf.VISIT : letter.subject;
}

function compose({ facts, language, tone, purpose: words, instructions }: DraftRequest): WrittenDraft {
  const spoken = language.split("-")[0]!.toLowerCase();
  const letter: Letter = letters[spoken] ?? letters.en!;
  // With its region where it has one: numbers and dates follow it.
  const locale = (letters[spoken] && Intl.DateTimeFormat.supportedLocalesOf(canonical(language))[0]) || "en";
  const used = new Set<string>();
  const find = (subjectType: string, field: string, more: Partial<Fact> = {}): Fact | undefined =>
    facts.find(
      (fact) =>
        fact.subjectType === subjectType &&
        fact.field === field &&
        Object.entries(more).every(([name, value]) => fact[name as keyof Fact] === value),
    );
  /** A sentence with the value of a fact, where there is one. */
  const say = (fact: Fact | undefined, sentence: (value: string) => string): string | undefined => {
    if (!fact) return undefined;
    used.add(fact.key);
    return sentence(inWords(fact, locale).replace(/[\u00a0\u202f]/g, " "));
  };
  const day = (fact: Fact | undefined, sentence = (value: string) => value) =>
    say(fact && { ...fact, value: fact.value.slice(0, 10) }, sentence);

  const title = find("project", "title");
  const project = say(title, (value) => value) ?? "";
  const units = facts.filter(({ kind }) => kind === "unit");
  const lineOf = (unit: Fact): string => {
    used.add(unit.key);
    if (unit.reserved) return letter.reserved(unit.value);
    const of = (field: string) => find("unit", field, { unit: unit.value });
    const details = [
      say(of("bedrooms"), (n) => letter.bedrooms(Number(n))),
      say(of("baths"), (n) => letter.baths(Number(n))),
      say(of("sqft"), letter.sqft),
      say(of("price"), letter.price),
      tone === "CONCISE" ? undefined : say(of("estimatedDeliveryDate"), letter.delivery),
    ].filter((detail) => detail !== undefined);
    return letter.unit(unit.value, details, unit.available === true);
  };
  const appointment = find("appointment", "startsAt", { when: "next" });
  const place = find("appointment", "location") ?? find("appointment", "videoUrl");
  const office = find("sales_office", "address");
  const byAppointment = find("sales_office", "byAppointmentOnly");
  const promotion = find("promotion", "title");
  const promoted = (field: string) =>
    find("promotion", field, promotion && { subjectId: promotion.subjectId });
  const isShort = tone === "CONCISE";

  const purpose = purposeOf(words);
  const parts = {
    units: () => {
      const [first] = units;
      if (!first) return say(find("project", "abstract.priceMin"), (amount) => letter.from(project, amount));
      for (const { key, kind } of facts) if (kind === "choice") used.add(key);
      const lines = units.map(lineOf);
      return lines.length > 1 && !first.reserved
        ? `${letter.someUnits(project)}\n${lines.map((line) => `- ${line}`).join("\n")}`
        : lines.join("\n");
    },
    openHouse: () => say(find("open_house", "startsAt"), letter.openHouse),
    promotion: () =>
      say(promotion, (name) =>
        letter.promotion(
          name,
          say(promoted("amount"), (value) => value) ?? say(promoted("percent"), (value) => value),
          day(promoted("endsAt")),
        ),
      ),
    office: () =>
      say(office, (address) =>
        letter.office(address, byAppointment ? Boolean(used.add(byAppointment.key)) : false),
      ),
    website: () => say(find("project", "websiteUrl"), letter.website),
  };
  const shown = (contents[purpose ?? "GENERAL"] as readonly (keyof typeof parts)[]).filter(
    (part, at) =>
      // A concise mail says what it is for, and which homes there are; whoever is expected needs no other invitation.
      (!isShort || part === "units" || (at === 0 && purpose !== undefined)) &&
      !(appointment && part === "openHouse" && purpose !== "OPEN_HOUSE"),
  );
  const lastVisit = find("appointment", "startsAt", { when: "last" });
  const paragraphs: (string | undefined)[] = [
    [
      letter.thanks(project),
      (!isShort || purpose === "FOLLOW_UP") && !appointment ? day(lastVisit, letter.lastVisit) : undefined,
      appointment && say(appointment, letter.appointment),
      appointment && place && say(place, letter.at),
    ]
      .filter(Boolean)
      .join(" "),
    ...shown.map((part) => parts[part]()),
    purpose === "VISIT" && !appointment
      ? letter.askVisit
      : purpose === "FOLLOW_UP"
        ? letter.askMore
        : letter.ask(tone),
    [
      letter.closing(tone),
      say(find("user", "fullName"), (name) => name),
      say(find("organization", "name"), (name) => name),
    ]
      .filter(Boolean)
      .join("\n"),
  ];
  const greeting = say(find("lead", "name"), (name) => letter.greeting(name, tone));
  return {
    subject: subjectOf(letter, purpose, appointment !== undefined)(project).slice(0, 200),
    body: [greeting, ...paragraphs].filter(Boolean).join("\n\n"),
    language: letters[spoken] ? language : "en",
    factKeys: [...used],
    warnings: [
      ...(letters[spoken]
        ? []
        : [`The service composes drafts in ${Object.keys(letters).join(", ")}; this one is in English.`]),
      ...(words && !purpose
        ? [
            "The purpose was not understood: without a provider of language models, a draft is for homes, a visit, an open house, a promotion, an appointment or to follow up.",
          ]
        : []),
      ...(purpose && missing[purpose] && !find(...missing[purpose].fact) ? [missing[purpose].warning] : []),
      ...(instructions
        ? [
            "The instructions were not followed: without a provider of language models, drafts are composed from facts alone.",
          ]
        : []),
    ],
    model: "embedded",
  };
}

/** The tag, or nothing where it has the form of one only. */
function canonical(language: string): string[] {
  try {
    return Intl.getCanonicalLocales(language);
  } catch {
    return [language.split("-")[0]!];
  }
}

/** The value of a fact as people of a language write it. */
function inWords({ kind, value, currency }: Fact, locale: string): string {
  switch (kind) {
    case "money": {
      const amount = Number(value);
      const digits = Number.isInteger(amount) ? { maximumFractionDigits: 0 } : {};
      return new Intl.NumberFormat(locale, {
        style: "currency",
        currency: currency!,
        currencyDisplay: "code",
        ...digits,
      }).format(amount);
    }
    case "percent":
      return `${new Intl.NumberFormat(locale, { maximumFractionDigits: 4 }).format(Number(value))} %`;
    case "count":
      return new Intl.NumberFormat(locale, { useGrouping: Number(value) > 999 }).format(Number(value));
    case "month":
      return new Intl.DateTimeFormat(locale, { month: "long", year: "numeric", timeZone: "UTC" }).format(
        new Date(`${value}-01T00:00Z`),
      );
    case "time": {
      const hasTime = value.length > 10;
      return new Intl.DateTimeFormat(locale, {
        dateStyle: "full",
        ...(hasTime && { timeStyle: "short" as const }),
        timeZone: "UTC",
      }).format(new Date(hasTime ? `${value}Z` : `${value}T00:00Z`));
    }
    default:
      return value;
  }
}
