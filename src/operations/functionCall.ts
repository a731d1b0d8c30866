/** The SQL function call of an operation: named arguments, with ids resolved and values checked. */
import { TYPES, type PgCodec, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { baseCodec, camel } from "../schema/codecNames.ts";
import { tableName, type AnyResource } from "../schema/recordTables.ts";

/** Tables whose records have a slug; mirrors app_hidden.has_slug. */
const SLUG_TABLES: Record<string, string> = {
  project: "projects",
  organization: "organizations",
  user: "users",
};

/** A scalar domain over text. */
function isCheckedArgument({ codec }: PgResourceParameter): boolean {
  const tags = codec.extensions?.tags;
  return Boolean(codec.domainOfCodec) && baseCodec(codec) === TYPES.text && !tags?.enum && !tags?.transform;
}

const isSlugArgument = ({ codec }: PgResourceParameter) => baseCodec(codec) === TYPES.uuid;

const typeOf = ({ codec }: { codec: PgCodec }) => sql.literal(sql.compile(codec.sqlType).text);

/** A parameter as sent: as text if SQL resolves it to an id or checks it. */
export const sentParameter = (parameter: PgResourceParameter): PgResourceParameter =>
  isSlugArgument(parameter) || isCheckedArgument(parameter) ? { ...parameter, codec: TYPES.text } : parameter;

/** SQL resolves slugs to ids; scalars are checked one by one, so that a refusal names the argument. */
function argumentSql(parameter: PgResourceParameter, value: SQL, others: SQL, tableOfResult: string): SQL {
  const name = parameter.name!;
  if (isCheckedArgument(parameter)) {
    const type = parameter.codec.sqlType;
    return sql`app_hidden.checked(${value}, ${typeOf(parameter)}::regtype, ${sql.literal(camel(name))}, ${others})::${type}`;
  }
  if (!isSlugArgument(parameter)) return value;
  const table = name === "id" ? tableOfResult : (SLUG_TABLES[name.replace(/_id$/, "")] ?? "");
  return sql`app_hidden.record_id(${sql.literal(table)}, ${value}, ${sql.literal(camel(name))})`;
}

/** Other arguments passed to app_hidden.checked, so that it reports all invalid ones. */
function asOthers(others: readonly [PgResourceParameter, SQL][]): SQL {
  const each = others.map(
    ([parameter, value]) =>
      sql`jsonb_build_object('field', ${sql.literal(camel(parameter.name!))}, 'value', ${value}, 'type', ${typeOf(parameter)})`,
  );
  return each.length === 0 ? sql`'[]'` : sql`jsonb_build_array(${sql.join(each, ", ")})`;
}

/** Builds the call from the given arguments, each with its parameter name. */
export function functionCall(
  resource: AnyResource,
  parameters: readonly PgResourceParameter[],
  given: readonly [name: string, value: SQL][],
): SQL {
  const tableOfResult = (resource.codec.extensions?.pg?.name as string | undefined) ?? "";
  const named = given.map(
    ([name, value]) => [parameters.find((p) => p.name === name)!, value] as [PgResourceParameter, SQL],
  );
  const [first, ...others] = named.filter(([parameter]) => isCheckedArgument(parameter));
  const args = named.map(([parameter, value]) => {
    // The first checked argument reports for all.
    const alsoChecked = asOthers(parameter === first?.[0] ? others : []);
    return sql`${sql.identifier(parameter.name!)} => ${argumentSql(parameter, value, alsoChecked, tableOfResult)}`;
  });
  return sql`${sql.identifier(...tableName(resource))}(${sql.join(args, ", ")})`;
}
