/**
 * Reads pages of the root connections of tables tagged `@portfolio <permission>` along their indexes, like the lists:
 * the cursor's condition and the limit are inside the statement of src/lists/portfolio.ts. Fields over all rows, such
 * as totalCount and aggregates, read each scope separately, for which there is an index each.
 */
import { ConstantStep, lambda } from "postgraphile/grafast";
import { sql } from "postgraphile/pg-sql2";
import { CodedError } from "../base/errors.ts";
import { cursorValues } from "../lists/cursors.ts";
import { connectionArgument } from "../lists/listArguments.ts";
import { conditions, customPlan } from "../lists/filters.ts";
import { portfolioRowsSql, portfolioSql, scope, within, withDeleted } from "../lists/portfolio.ts";
import { chosenOrder, MAX_FIRST, pageSize } from "../lists/pageArguments.ts";
import { portfolioTable } from "../lists/portfolioField.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyStep, AnyQueryBuilder } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PortfolioConnectionsPlugin: true;
    }
  }
}

/** A filter with an additional field, which it may already have with the same value. */
function withMember(filter: Record<string, unknown> | null | undefined, name: string, value: unknown) {
  const given = filter?.[name];
  if (given != null && given !== value)
    throw new CodedError("BAD_USER_INPUT", `${name} is given twice, with different values.`, { field: name });
  return { ...filter, [name]: value };
}

/**
 * PERF: setting the page of the select makes the connection read it, even if only totals are requested. The page is
 * read if its records, its cursors or pageInfo are requested.
 */
function readPageOnDemand($connection: AnyStep): void {
  $connection.getHandler = () => $connection.getSubplan();
  const pageInfo = $connection.pageInfo.bind($connection);
  // Its cursors are those of records on the page.
  $connection.pageInfo = () => {
    $connection.setupSubplanWithPagination();
    return pageInfo();
  };
}

/**
 * Whether the arguments of a page are literals or omitted, and valid; otherwise they are refused together with the
 * page.
 */
const isSoundPage = (...[$first, $after]: unknown[]): boolean =>
  $first instanceof ConstantStep &&
  $first.data >= 0 &&
  $first.data <= MAX_FIRST &&
  $after instanceof ConstantStep &&
  $after.data == null;

export const PortfolioConnectionsPlugin: GraphileConfig.Plugin = {
  name: "PortfolioConnectionsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, build, context) {
        const { isPgFieldConnection, pgFieldResource } = context.scope;
        const resource = pgFieldResource as AnyResource | undefined;
        const permission = resource?.extensions?.tags?.portfolio;
        if (context.Self.name !== "Query" || !isPgFieldConnection || typeof permission !== "string")
          return field;
        const plan = field.plan!;
        const table = portfolioTable(build, resource!, permission);
        return {
          ...field,
          plan(...all: Parameters<typeof plan>) {
            const $connection = plan(...all);
            const $select = $connection.getSubplan();
            const fieldArgs = all[1];
            if (isSoundPage(fieldArgs.getRaw("first"), fieldArgs.getRaw("after")))
              readPageOnDemand($connection);
            const member = connectionArgument(build, resource!);
            const $filter = lambda(
              [fieldArgs.getRaw("filter"), ...(member ? [fieldArgs.getRaw(member.name)] : [])],
              ([filter, value]) =>
                value == null ? filter : withMember(filter, member!.name, value as unknown),
            );
            const $from = lambda(
              [$filter, fieldArgs.getRaw("first"), fieldArgs.getRaw("after"), fieldArgs.getRaw("orderBy")],
              ([filter, first, after, orderBy]) => {
                const order = chosenOrder(resource!, orderBy, null);
                // One more than requested shows whether there is a next page.
                return portfolioSql(table, {
                  filter,
                  order,
                  first: pageSize(first, 100) + 1,
                  offset: 0,
                  after: cursorValues(after, order, table.attributes),
                });
              },
            );
            const rows = sql.identifier(...table.source);
            const everything = $select.deferredSQL(
              lambda($filter, (filter) =>
                filter?.includeDeleted === true && table.columns.has("deleted_at")
                  ? withDeleted(table)
                  : (portfolioRowsSql(table, filter) ?? rows),
              ),
            );
            const $where = lambda($filter, (filter) => (qb: AnyQueryBuilder) => {
              qb.where(scope(table, qb.alias, filter));
              for (const condition of conditions(table.members, filter, qb.alias, within(table, filter)))
                qb.where(sql`${condition} ${customPlan}`);
            });
            $select.from = $select.deferredSQL($from);
            const clone = $select.connectionClone.bind($select);
            $select.connectionClone = (...mode: unknown[]) => {
              const $clone = clone(...mode);
              $clone.from = everything;
              $clone.apply($where);
              return $clone;
            };
            return $connection;
          },
        };
      },
    },
  },
};
