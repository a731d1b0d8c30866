/** Generates inputs from the schema: for each type and field name, values that are valid or nearly valid. */
import {
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type GraphQLInputType,
  type GraphQLSchema,
} from "graphql";
import type { Records } from "./records.ts";

/** A random integer from 0 up to but excluding the given one. */
export type Random = (below: number) => number;

export interface Wanted {
  random: Random;
  records: Records;
  schema: GraphQLSchema;
  /** The record type of the operation. */
  about: string;
  /** Probability of an optional field, from 0 to 1, by its path. */
  likelihood(path: string): number;
  /** The party of the player, contained in all free texts. */
  party: string;
}

/** Fields that refer to a record type that their names do not tell. */
const types: Record<string, string> = {
  assignee: "User",
  author: "User",
  buyer: "Buyer",
  card: "ProcessorCard",
  category: "SpecCategory",
  charge: "ProcessorCharge",
  collection: "ProjectCollection",
  elevation: "FloorPlanElevationImage",
  element: "SpecElement",
  execution: "WorkflowExecution",
  generation: "ServiceIntelligenceGeneration",
  host: "User",
  integration: "OrganizationIntegration",
  member: "User",
  milestone: "DepositScheduleMilestone",
  office: "SalesOffice",
  option: "SpecOption",
  owner: "User",
  purchase: "Buyer",
  reason: "FalloutReason",
  fallout: "FalloutReason",
  report: "CustomReport",
  source: "LeadSource",
  ticket: "EscalationTicket",
};

const singular = (name: string) => name.replace(/ies$/, "y").replace(/s$/, "");

/** The record type of the field's id. */
export function typeOfId(name: string, { schema, about }: Pick<Wanted, "schema" | "about">): string {
  const base = name.replace(/Ids?$/, "");
  if (base === "" || name === "id" || name === "ids") return about;
  const pascal = `${base[0]!.toUpperCase()}${base.slice(1)}`;
  for (const candidate of [pascal, singular(pascal)]) if (schema.getType(candidate)) return candidate;
  const last = /[A-Z]?[a-z]+$/.exec(singular(base))![0].toLowerCase();
  return types[base] ?? types[last] ?? about;
}

/** Recursive inputs, such as filters and steps, end here: optional fields are omitted, lists are empty. */
const MOST_LEVELS = 8;
const isDeep = (path: string) => path.split(".").length > MOST_LEVELS;

/** A value of that type; undefined if it is optional and omitted. */
export function valueOf(type: GraphQLInputType, path: string, wanted: Wanted): unknown {
  const { random } = wanted;
  const name = path.split(".").pop()!;
  if (!isNonNullType(type)) {
    if (random(1000) >= 1000 * wanted.likelihood(path) || isDeep(path)) return undefined;
    return random(50) === 0 ? null : present(type, name, path, wanted);
  }
  return present(type.ofType, name, path, wanted);
}

function present(type: GraphQLInputType, name: string, path: string, wanted: Wanted): unknown {
  const { random } = wanted;
  if (isListType(type)) {
    const amount = random(8) === 0 || isDeep(path) ? 0 : 1 + random(2);
    const item = isNonNullType(type.ofType) ? type.ofType.ofType : type.ofType;
    return Array.from({ length: amount }, () => present(item, name, path, wanted));
  }
  if (isEnumType(type)) return pick(type.getValues(), random).name;
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const entries = fields.map((field) => [field.name, valueOf(field.type, `${path}.${field.name}`, wanted)]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  if (isNonNullType(type)) return present(type.ofType, name, path, wanted);
  return scalar(type.name, name, wanted);
}

function scalar(type: string, name: string, wanted: Wanted): unknown {
  const { random, party } = wanted;
  const whole = () => (random(12) === 0 ? pick([0, -1, 2 ** 31 - 1], random) : 1 + random(5));
  switch (type) {
    case "ID":
      return (
        wanted.records.pick(typeOfId(name, wanted), wanted.party, random) ??
        "00000000-0000-7000-8000-000000000000"
      );
    case "Boolean":
      return random(2) === 0;
    case "Int":
    case "BigInt":
      return /year/i.test(name) ? 2027 : whole();
    case "Float":
      return /latitude|longitude/i.test(name) ? 10 + random(70) : whole() / 2;
    case "Decimal":
      return /price|amount|value|balance/i.test(name) ? String(100 + random(900)) : String(whole());
    case "Date":
      return `2027-0${1 + random(9)}-1${random(9)}`;
    case "DateTime":
      return `2027-0${1 + random(9)}-1${random(9)}T1${random(9)}:00:00Z`;
    case "EmailAddress":
      return `fuzz.${random(40)}.${party.toLowerCase()}@example.com`;
    case "PhoneNumber":
      return `+1416555${1000 + random(9000)}`;
    case "URL":
      return `https://fuzz${random(20)}.example.com/${party}`;
    case "CountryCode":
      return pick(["CA", "US", "DE"], random);
    case "CurrencyCode":
      return pick(["CAD", "CAD", "USD"], random);
    case "LanguageCode":
      return pick(["en", "fr"], random);
    case "JSON":
      return pick([{}, { [party]: party }, [], party, 7], random);
    case "Upload":
      return `data:image/png;name=fuzz.png;base64,${onePixel}`;
    case "Cursor":
      return undefined;
    default:
      return text(name, wanted);
  }
}

const onePixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Formats of fields that are strings in the schema. */
const forms: [RegExp, (wanted: Wanted) => string][] = [
  [/password/i, () => "correct horse battery staple"],
  [/email|username/i, ({ random, party }) => `fuzz.${random(40)}.${party.toLowerCase()}@example.com`],
  [/time_?zone/i, () => "America/Toronto"],
  [/currency/i, () => "CAD"],
  [/country/i, () => "CA"],
  [/locale|language/i, () => "en"],
  [/phone/i, ({ random }) => `+1416555${1000 + random(9000)}`],
  [/colou?r/i, () => "#336699"],
  [/cron|schedule/i, () => "0 9 * * 1"],
  [/scopes?$/i, ({ random }) => pick(["lead.read", "inventory.read", "project.read", "sale.read"], random)],
  [/events?$/i, ({ random }) => pick(["lead.*", "lead.created", "*", "unit.updated"], random)],
  [/slug|code$/i, ({ random, party }) => `fuzz-${party.toLowerCase()}-${random(1000)}`],
  [/source$/i, () => "WEB_DIRECT"],
];

function text(name: string, wanted: Wanted): string {
  const { random } = wanted;
  const form = forms.find(([pattern]) => pattern.test(name));
  if (form && random(20) > 0) return form[1](wanted);
  if (random(30) === 0)
    return pick(["", " ", "ä".repeat(300), "{{ lead.email }}", "<b>x</b>", "' or 1=1 --"], random);
  return `Fuzz ${name} ${random(1000)} ${wanted.party}`;
}

/** A random element. */
export function pick<T>(values: readonly T[], random: Random): T {
  return values[random(values.length)]!;
}
