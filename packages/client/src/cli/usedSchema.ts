/** Which parts of the schema the programs of an organization use, and which changes break them. */
import type { GraphQLSchema } from "graphql";
import { type Context, UsageError } from "./command.ts";
import { operation } from "./queries.ts";
import { loadGraphql } from "./servedSchema.ts";

type Graphql = Awaited<ReturnType<typeof loadGraphql>>;

const USAGE = operation<
  { organization: { schemaUsage: { coordinate: string; lastUsedOn: string }[] | null } | null },
  { id: string }
>("query ($id: ID!) { organization(id: $id) { schemaUsage { coordinate lastUsedOn } } }");

/** Day of the last use, by schema coordinate. */
export type UsedSchema = ReadonlyMap<string, string>;

/**
 * The schema coordinates that the organization used in the last 30 days.
 * @throws UsageError if nothing is recorded, or if the viewer is not one of its admins
 */
export async function loadUsedSchema(context: Context): Promise<UsedSchema> {
  const client = await context.connect();
  const { organization } = await client.request(USAGE, { id: await context.organization() });
  const usage = organization?.schemaUsage ?? [];
  if (usage.length === 0)
    throw new UsageError("No use is recorded, or not for you: only admins see what their organization uses.");
  return new Map(usage.map(({ coordinate, lastUsedOn }) => [coordinate, lastUsedOn]));
}

/**
 * Adds what is used although no document names it: all fields of input types of variables, and the values of
 * enumerations that fields return.
 */
export function withImplied(graphql: Graphql, schema: GraphQLSchema, used: UsedSchema): UsedSchema {
  const all = new Map(used);
  const add = (coordinate: string, day: string) => all.has(coordinate) || all.set(coordinate, day);
  // Iterating over a map also visits entries that are added meanwhile.
  for (const [coordinate, day] of all) {
    const [name, member] = coordinate.split(".") as [string, string | undefined];
    const type = schema.getType(name);
    if (!member && graphql.isInputObjectType(type))
      for (const field of Object.values(type.getFields())) {
        add(`${name}.${field.name}`, day);
        add(graphql.getNamedType(field.type).name, day);
      }
    else if (!member && graphql.isEnumType(type))
      for (const value of type.getValues()) add(`${name}.${value.name}`, day);
    else if (member && (graphql.isObjectType(type) || graphql.isInterfaceType(type))) {
      const field = type.getFields()[member];
      const result = field && graphql.getNamedType(field.type);
      if (graphql.isEnumType(result)) add(result.name, day);
    }
  }
  return all;
}

/** The schema coordinate of a change, as findBreakingChanges of graphql-js describes it. */
function coordinateOf(description: string): string | undefined {
  const member = /^(\w+) was (?:removed|added) (?:from|to) (?:enum|union) type (\w+)/.exec(description);
  if (member) return `${member[2]}.${member[1]}`;
  const required = /^A required \w+ \w+ on (?:input type )?([\w.]+) was added/.exec(description);
  if (required) return required[1];
  const [, coordinate, argument] = /^([\w.]+)(?: arg (\w+))?/.exec(description) ?? [];
  return argument === undefined ? coordinate : `${coordinate}(${argument}:)`;
}

/**
 * The day of the last use of the changed part; undefined if it is not used. A type is used if one of its
 * fields or values is.
 */
export function lastUse(used: UsedSchema, description: string): string | undefined {
  const coordinate = coordinateOf(description);
  if (coordinate === undefined) return undefined;
  const days = [...used].filter(([one]) => one === coordinate || one.startsWith(`${coordinate}.`));
  return days
    .map(([, day]) => day)
    .toSorted()
    .at(-1);
}

/** The deprecation reason of a part of the schema; undefined if it is not deprecated or does not exist. */
export function deprecationOf(
  graphql: Graphql,
  schema: GraphQLSchema,
  coordinate: string,
): string | undefined {
  const [, name, member, argument] = /^(\w+)\.(\w+)(?:\((\w+):\))?$/.exec(coordinate) ?? [];
  const type = name === undefined ? undefined : schema.getType(name);
  if (member === undefined) return undefined;
  if (graphql.isEnumType(type)) return type.getValue(member)?.deprecationReason ?? undefined;
  if (graphql.isInputObjectType(type)) return type.getFields()[member]?.deprecationReason ?? undefined;
  if (!graphql.isObjectType(type) && !graphql.isInterfaceType(type)) return undefined;
  const field = type.getFields()[member];
  if (argument === undefined) return field?.deprecationReason ?? undefined;
  return field?.args.find((arg) => arg.name === argument)?.deprecationReason ?? undefined;
}

/** A deprecated part of the schema, and the day of its last use. */
export interface DeprecatedUse {
  coordinate: string;
  day: string;
  /** Whether a document named it. Otherwise a variable may have contained it, or a field may have returned it. */
  isNamed: boolean;
  reason: string;
}

/**
 * The deprecated parts of a schema that are used.
 * @param recorded the coordinates that documents name
 * @param used the same, with everything that they imply
 */
export function deprecatedUses(
  graphql: Graphql,
  schema: GraphQLSchema,
  recorded: UsedSchema,
  used: UsedSchema,
): DeprecatedUse[] {
  return [...used].flatMap(([coordinate, day]) => {
    const reason = deprecationOf(graphql, schema, coordinate);
    return reason === undefined ? [] : [{ coordinate, day, isNamed: recorded.has(coordinate), reason }];
  });
}
