/**
 * The part of JSON Schema that the catalogue writes its configurations in. It says what is wrong where, in a sentence.
 */
import { Misconfigured } from "./adapter.ts";

interface Schema {
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | false;
  minProperties?: number;
  maxProperties?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
}

const kinds = {
  object: "an object",
  array: "a list",
  string: "a text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
};

function isOfType(value: unknown, type: keyof typeof kinds): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === type;
}

/**
 * @param path what the value is called
 * @throws Misconfigured with the path of the first fault
 */
export function checkAgainst(schema: unknown, value: unknown, path: string): void {
  const s = (schema ?? {}) as Schema;
  const fault = (message: string, at = path): never => {
    throw new Misconfigured(at, `${at} ${message}.`);
  };
  if (s.type && !isOfType(value, s.type)) fault(`has to be ${kinds[s.type]}`);
  if (s.enum && !s.enum.includes(value)) fault(`has to be one of ${s.enum.join(", ")}`);
  if (typeof value === "string") {
    if (value.length < (s.minLength ?? 0)) fault("is empty");
    if (value.length > (s.maxLength ?? Infinity)) fault(`is longer than ${s.maxLength} characters`);
    if (s.pattern && !new RegExp(s.pattern, "u").test(value)) fault("does not have the form that it needs");
  } else if (typeof value === "number") {
    if (value < (s.minimum ?? -Infinity) || value > (s.maximum ?? Infinity))
      fault(`has to be from ${s.minimum} to ${s.maximum}`);
  } else if (Array.isArray(value)) {
    if (value.length < (s.minItems ?? 0) || value.length > (s.maxItems ?? Infinity))
      fault(`has to have ${s.minItems ?? 0} to ${s.maxItems} members`);
    for (const [index, item] of value.entries()) checkAgainst(s.items, item, `${path}[${index}]`);
  } else if (typeof value === "object" && value !== null) {
    const names = Object.keys(value);
    for (const name of s.required ?? [])
      if (!Object.hasOwn(value, name)) fault("is missing", `${path}.${name}`);
    if (names.length < (s.minProperties ?? 0) || names.length > (s.maxProperties ?? Infinity))
      fault(`has to have ${s.minProperties ?? 0} to ${s.maxProperties} members`);
    for (const name of names) {
      const known = s.properties && Object.hasOwn(s.properties, name) ? s.properties[name] : undefined;
      if (!known && s.additionalProperties === false) fault("is not known", `${path}.${name.slice(0, 100)}`);
      checkAgainst(
        known ?? s.additionalProperties,
        (value as Record<string, unknown>)[name],
        `${path}.${name.slice(0, 100)}`,
      );
    }
  }
}
