import { expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedScalarType,
} from "graphql";

/** The description of every part of the tracked schema; `npm run check` ensures that it is the served one. */
async function parts(): Promise<Map<string, string>> {
  const file = join(import.meta.dirname, "../../schema.graphql");
  const schema = buildSchema(await readFile(file, "utf8"));
  const found = new Map<string, string>();
  const see = (name: string, description: string | null | undefined) => found.set(name, description ?? "");
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__") || isSpecifiedScalarType(type)) continue;
    see(type.name, type.description);
    if (isEnumType(type))
      for (const value of type.getValues()) see(`${type.name}.${value.name}`, value.description);
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields()))
        see(`${type.name}.${field.name}`, field.description);
    if (isObjectType(type) || isInterfaceType(type))
      for (const field of Object.values(type.getFields())) {
        see(`${type.name}.${field.name}`, field.description);
        for (const argument of field.args)
          see(`${type.name}.${field.name}(${argument.name})`, argument.description);
      }
  }
  return found;
}

const named = (found: Map<string, string>, condition: (description: string, name: string) => boolean) =>
  [...found].filter(([name, description]) => condition(description, name)).map(([name]) => name);

test("every type, field, argument and enumeration value has a description", async () => {
  const found = await parts();
  expect(found.size).toBeGreaterThan(500);
  expect(named(found, (description) => description.trim() === "")).toEqual([]);
});

test("descriptions are sentences, not repeated names", async () => {
  const found = await parts();
  expect(named(found, (description) => !/[.:?]$/.test(description.trim()))).toEqual([]);
  const spelledOut = (description: string, name: string) => {
    const last = /(\w+)\)?$/.exec(name)![1]!;
    const words = last.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
    return description.includes(" ") && description.toLowerCase() === `the ${words}.` && words.includes(" ");
  };
  expect(named(found, spelledOut)).toEqual([]);
});

test("no generated description of the libraries remains, or only repeats the name of an operation or a type", async () => {
  const found = await parts();
  const stock =
    /^(Reads (a single|a set|through|and enables)|An? `\w+` edge in|A connection to a list|A list of edges|A cursor for use|An input for mutations|Input of \w+\.$|Orders of \w+\.$)/;
  expect(named(found, (description) => stock.test(description))).toEqual([]);
});

test("the description of a nullable related record says when it is null", async () => {
  const file = join(import.meta.dirname, "../../schema.graphql");
  const schema = buildSchema(await readFile(file, "utf8"));
  const silent = [];
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith("__")) continue;
    for (const field of Object.values(type.getFields())) {
      // A record beside its id.
      if (!isObjectType(field.type) || !field.type.getFields()["id"] || !type.getFields()[`${field.name}Id`])
        continue;
      if (!/\bnull\b/i.test(field.description ?? "")) silent.push(`${type.name}.${field.name}`);
    }
  }
  expect(silent).toEqual([]);
});
