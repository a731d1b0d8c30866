import { letters, type Letter } from "./letterTexts.ts";
import { purposeOf, type Purpose } from "./purposes.ts";
import type { DraftProvider, DraftRequest, Fact, WrittenDraft } from "./draftProvider.ts";

/** Composes a mail only from facts, without a language model. */
export function createEmbedded(): DraftProvider {
  return { name: "EMBEDDED", write: async (request) => compose(request) };
}

/** The parts of a mail between its first and last lines, in order, by its purpose. */
type Part = "units" | "openHouse" | "promotion" | "office" | "website";
const contents: Record<Purpose | "GENERAL", readonly Part[]> = {
  GENERAL: ["units", "openHouse", "promotion", "office", "website"],
  VISIT: ["units", "openHouse", "promotion", "office", "website"],
  OPEN_HOUSE: ["openHouse", "office", "units", "website"],
  PROMOTION: ["promotion", "units", "website"],
  FOLLOW_UP: ["units", "website"],
  HOMES: ["units", "website"],
  APPOINTMENT: ["office"],
};

/** The record that a purpose requires, and the message without one. */
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

function compose(request: DraftRequest): WrittenDraft {
  const { language, purpose: words } = request;
  const spoken = language.split("-")[0]!.toLowerCase();
  const letter: Letter = letters[spoken] ?? letters.en!;
  // With its region, if any: the formats of numbers and dates depend on it.
  const locale = (letters[spoken] && Intl.DateTimeFormat.supportedLocalesOf(canonical(language))[0]) || "en";
  const purpose = purposeOf(words);
  const mail = new Mail(request, { letter, locale, purpose });
  return {
    subject: mail.subject(),
    body: mail.body(),
    language: letters[spoken] ? language : "en",
    factKeys: [...mail.used],
    warnings: [
      ...(letters[spoken]
        ? []
        : [`The service composes drafts in ${Object.keys(letters).join(", ")}; this one is in English.`]),
      ...(words && !purpose
        ? [
            "The purpose was not understood: without a provider of language models, a draft is for homes, a visit, an open house, a promotion, an appointment or to follow up.",
          ]
        : []),
      ...(purpose && missing[purpose] && !mail.find(...missing[purpose].fact)
        ? [missing[purpose].warning]
        : []),
      ...(request.instructions
        ? [
            "The instructions were not followed: without a provider of language models, drafts are composed from facts alone.",
          ]
        : []),
    ],
    model: "embedded",
  };
}

interface Wording {
  letter: Letter;
  /** Formats numbers and dates. */
  locale: string;
  purpose: Purpose | undefined;
}

/** A mail being composed: its parts, each of which records the facts that it states. */
class Mail {
  /** Keys of the facts that are stated. */
  readonly used = new Set<string>();
  readonly #facts: readonly Fact[];
  readonly #tone: DraftRequest["tone"];
  readonly #letter: Letter;
  readonly #locale: string;
  readonly #purpose: Purpose | undefined;
  readonly #project: string;
  readonly #appointment: Fact | undefined;

  constructor({ facts, tone }: DraftRequest, { letter, locale, purpose }: Wording) {
    this.#facts = facts;
    this.#tone = tone;
    this.#letter = letter;
    this.#locale = locale;
    this.#purpose = purpose;
    this.#project = this.#say(this.find("project", "title"), (value) => value) ?? "";
    this.#appointment = this.find("appointment", "startsAt", { when: "next" });
  }

  find(subjectType: string, field: string, more: Partial<Fact> = {}): Fact | undefined {
    return this.#facts.find(
      (fact) =>
        fact.subjectType === subjectType &&
        fact.field === field &&
        Object.entries(more).every(([name, value]) => fact[name as keyof Fact] === value),
    );
  }

  subject(): string {
    const isExpected = this.#appointment !== undefined;
    return subjectOf(this.#letter, this.#purpose, isExpected)(this.#project).slice(0, 200);
  }

  body(): string {
    const letter = this.#letter;
    const isShort = this.#tone === "CONCISE";
    const appointment = this.#appointment;
    const shown = contents[this.#purpose ?? "GENERAL"].filter(
      (part, at) =>
        // A concise mail states its purpose and the available homes; a lead with an appointment needs no other invitation.
        (!isShort || part === "units" || (at === 0 && this.#purpose !== undefined)) &&
        !(appointment && part === "openHouse" && this.#purpose !== "OPEN_HOUSE"),
    );
    const paragraphs = [
      this.#opening(isShort),
      ...shown.map((part) => this.#part(part)),
      this.#purpose === "VISIT" && !appointment
        ? letter.askVisit
        : this.#purpose === "FOLLOW_UP"
          ? letter.askMore
          : letter.ask(this.#tone),
      [
        letter.closing(this.#tone),
        this.#say(this.find("user", "fullName"), (name) => name),
        this.#say(this.find("organization", "name"), (name) => name),
      ]
        .filter(Boolean)
        .join("\n"),
    ];
    const greeting = this.#say(this.find("lead", "name"), (name) => letter.greeting(name, this.#tone));
    return [greeting, ...paragraphs].filter(Boolean).join("\n\n");
  }

  #opening(isShort: boolean): string {
    const letter = this.#letter;
    const appointment = this.#appointment;
    const lastVisit = this.find("appointment", "startsAt", { when: "last" });
    const place = this.find("appointment", "location") ?? this.find("appointment", "videoUrl");
    return [
      letter.thanks(this.#project),
      (!isShort || this.#purpose === "FOLLOW_UP") && !appointment
        ? this.#day(lastVisit, letter.lastVisit)
        : undefined,
      appointment && this.#say(appointment, letter.appointment),
      appointment && place && this.#say(place, letter.at),
    ]
      .filter(Boolean)
      .join(" ");
  }

  #part(name: Part): string | undefined {
    const letter = this.#letter;
    switch (name) {
      case "units":
        return this.#units();
      case "openHouse":
        return this.#say(this.find("open_house", "startsAt"), letter.openHouse);
      case "promotion":
        return this.#promotion();
      case "office":
        return this.#office();
      case "website":
        return this.#say(this.find("project", "websiteUrl"), letter.website);
    }
  }

  #units(): string | undefined {
    const letter = this.#letter;
    const units = this.#facts.filter(({ kind }) => kind === "unit");
    const [first] = units;
    if (!first)
      return this.#say(this.find("project", "abstract.priceMin"), (amount) =>
        letter.from(this.#project, amount),
      );
    for (const { key, kind } of this.#facts) if (kind === "choice") this.used.add(key);
    const lines = units.map((unit) => this.#unit(unit));
    return lines.length > 1 && !first.reserved
      ? `${letter.someUnits(this.#project)}\n${lines.map((line) => `- ${line}`).join("\n")}`
      : lines.join("\n");
  }

  #unit(unit: Fact): string {
    const letter = this.#letter;
    this.used.add(unit.key);
    if (unit.reserved) return letter.reserved(unit.value);
    const of = (field: string) => this.find("unit", field, { unit: unit.value });
    const details = [
      this.#say(of("bedrooms"), (n) => letter.bedrooms(Number(n))),
      this.#say(of("baths"), (n) => letter.baths(Number(n))),
      this.#say(of("sqft"), letter.sqft),
      this.#say(of("price"), letter.price),
      this.#tone === "CONCISE" ? undefined : this.#say(of("estimatedDeliveryDate"), letter.delivery),
    ].filter((detail) => detail !== undefined);
    return letter.unit(unit.value, details, unit.available === true);
  }

  #promotion(): string | undefined {
    const promotion = this.find("promotion", "title");
    const of = (field: string) =>
      this.find("promotion", field, promotion && { subjectId: promotion.subjectId });
    return this.#say(promotion, (name) =>
      this.#letter.promotion(
        name,
        this.#say(of("amount"), (value) => value) ?? this.#say(of("percent"), (value) => value),
        this.#day(of("endsAt")),
      ),
    );
  }

  #office(): string | undefined {
    const byAppointment = this.find("sales_office", "byAppointmentOnly");
    return this.#say(this.find("sales_office", "address"), (address) =>
      this.#letter.office(address, byAppointment ? Boolean(this.used.add(byAppointment.key)) : false),
    );
  }

  /** A sentence with the value of a fact, if there is one. */
  #say(fact: Fact | undefined, sentence: (value: string) => string): string | undefined {
    if (!fact) return undefined;
    this.used.add(fact.key);
    return sentence(inWords(fact, this.#locale).replace(/[\u00a0\u202f]/g, " "));
  }

  /** The same with the day of a time. */
  #day(fact: Fact | undefined, sentence = (value: string) => value): string | undefined {
    return this.#say(fact && { ...fact, value: fact.value.slice(0, 10) }, sentence);
  }
}

/** The tag if it is well-formed, otherwise nothing. */
function canonical(language: string): string[] {
  try {
    return Intl.getCanonicalLocales(language);
  } catch {
    return [language.split("-")[0]!];
  }
}

/** The value of a fact in the format of a language. */
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
