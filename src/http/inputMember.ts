import {
  getArgumentValues,
  getNamedType,
  isInputObjectType,
  Kind,
  type ExecutionArgs,
  type GraphQLError,
  type GraphQLInputType,
} from "postgraphile/graphql";

/** `email_address` → `EmailAddress`. */
const scalarName = (domain: string) =>
  domain.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** The paths in `value` that contain a value of the scalar, such as `agent.email`. */
function places(type: GraphQLInputType, value: unknown, scalar: string, at: string[]): string[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value))
    return value.flatMap((item) => places(getNamedType(type) as GraphQLInputType, item, scalar, at));
  const named = getNamedType(type);
  if (named.name === scalar) return [at.join(".")];
  if (!isInputObjectType(named)) return [];
  return Object.entries(named.getFields()).flatMap(([name, member]) =>
    places(member.type, (value as Record<string, unknown>)[name], scalar, [...at, name]),
  );
}

/**
 * The input field that a domain of the database refused. PostgreSQL names the domain but not the argument; if exactly
 * one field has a value of its scalar, it is that one.
 */
export function inputMember(
  cause: unknown,
  error: GraphQLError | undefined,
  { schema, variableValues }: ExecutionArgs,
): string | undefined {
  const { dataType } = (cause ?? {}) as { dataType?: unknown };
  const node = error?.nodes?.[0];
  if (typeof dataType !== "string" || node?.kind !== Kind.FIELD) return undefined;
  const field = schema.getMutationType()?.getFields()[node.name.value];
  if (!field) return undefined;
  const values = getArgumentValues(field, node, variableValues as Record<string, unknown>);
  const found = field.args.flatMap((arg) =>
    places(arg.type, values[arg.name], scalarName(dataType), arg.name === "input" ? [] : [arg.name]),
  );
  return found.length === 1 ? found[0] : undefined;
}
