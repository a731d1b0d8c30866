/**
 * The JSON Schemas (draft 2020-12) of configurations and credentials in the catalogue. Validation errors are sentences with a path.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { Misconfigured } from "./adapter.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

const kinds: Record<string, string> = {
  object: "an object",
  array: "a list",
  string: "a text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

// PERF: `checkCatalogue` validates the schemas themselves, at development time.
const ajv = new Ajv2020({ ownProperties: true, verbose: true, meta: false, validateSchema: false });

/** By the text of the schema, each compiled once. */
const compiled = new Map<string, ValidateFunction>();

function validatorOf(schema: object): ValidateFunction {
  const text = JSON.stringify(schema);
  let validator = compiled.get(text);
  if (!validator) compiled.set(text, (validator = ajv.compile(schema)));
  return validator;
}

/**
 * @param name the name of the value in messages
 * @throws Misconfigured with the path of the first error
 */
export function checkAgainst(schema: object | null, value: unknown, name: string): void {
  const validator = validatorOf(schema ?? {});
  if (validator(value)) return;
  // The error that no alternative matches follows those of each alternative.
  const fault = validator.errors!.at(-1)!;
  const { missingProperty, additionalProperty } = fault.params as Record<string, string | undefined>;
  const member = missingProperty ?? additionalProperty;
  const place = `${placeOf(fault.instancePath, value, name)}${member === undefined ? "" : `.${shortened(member)}`}`;
  throw new Misconfigured(place, `${place} ${sentence(fault)}.`);
}

const shortened = (member: string) => member.slice(0, 100);

/** `/mapping/e~1mail` → `config.mapping.e/mail`, `/events/0` → `config.events[0]`. */
function placeOf(pointer: string, root: unknown, name: string): string {
  let place = name;
  let value: DatabaseValue = root;
  for (const part of pointer.split("/").slice(1)) {
    const member = part.replaceAll("~1", "/").replaceAll("~0", "~");
    place += Array.isArray(value) ? `[${member}]` : `.${shortened(member)}`;
    value = value[member];
  }
  return place;
}

/** A message that says what is wrong and what to do. */
function sentence({ keyword, params, parentSchema, message }: ErrorObject): string {
  const rule = parentSchema as Record<string, DatabaseValue>;
  switch (keyword) {
    case "required":
      return "is missing";
    case "additionalProperties":
      return "is not known; leave it out";
    case "type":
      return `has to be ${[params["type"]]
        .flat()
        .map((type) => kinds[type])
        .join(" or ")}`;
    case "enum":
      return `has to be one of ${(params["allowedValues"] as unknown[]).join(", ")}`;
    case "pattern":
      return "does not have the form that it needs";
    case "minLength":
      return params["limit"] === 1 ? "is empty" : `is shorter than ${params["limit"]} characters`;
    case "maxLength":
      return `is longer than ${params["limit"]} characters`;
    case "minimum":
    case "maximum":
      return `has to be ${range(rule["minimum"], rule["maximum"], "")}`;
    case "minItems":
    case "maxItems":
      return `has to have ${range(rule["minItems"], rule["maxItems"], " members")}`;
    case "minProperties":
    case "maxProperties":
      return `has to have ${range(rule["minProperties"], rule["maxProperties"], " members")}`;
    default:
      return message ?? "does not fit its schema";
  }
}

const range = (least: number | undefined, most: number | undefined, what: string): string =>
  least === undefined
    ? `${most}${what} at most`
    : most === undefined
      ? `${least}${what} or more`
      : `from ${least} to ${most}${what}`;

/**
 * Refuses invalid schemas, and those with unknown keywords.
 * @throws Error which names the application
 */
export function checkCatalogue(
  apps: readonly { key: string; config_schema: object | null; credentials_schema: object | null }[],
): void {
  const strict = new Ajv2020();
  for (const { key, ...schemas } of apps)
    for (const [column, schema] of Object.entries(schemas))
      try {
        if (schema) strict.compile(schema);
      } catch (error) {
        throw new Error(`${column} of the application ${key}: ${(error as Error).message}`, { cause: error });
      }
}
