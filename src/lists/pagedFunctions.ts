/**
 * Functions tagged `@paged` compute each row at some cost, such as a former state from events. PostgreSQL computes all
 * rows of a function before `limit` and `offset` apply. These functions therefore receive the page as their parameters
 * `page_size` and `page_start`, and return the rows of that page only.
 */
import { TYPES } from "postgraphile/@dataplan/pg";
import { lambda, type FieldArgs } from "postgraphile/grafast";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyType } from "../schema/stackTypes.ts";
import { pageSize, skip } from "./pageArguments.ts";

const pageParameters = ["page_size", "page_start"];

/** Whether a function receives the page of its list. */
export const isPaged = ({ parameters, extensions }: AnyResource): boolean =>
  Boolean(parameters) && extensions?.tags?.paged !== undefined;

/** The plan of the list of such a function: passes `first` and `offset` to the function. */
export function planOfPage(build: GraphileBuild.Build, resource: AnyResource) {
  const own = resource.parameters!.filter(
    ({ name }: { name: string | null }) => !pageParameters.includes(name ?? ""),
  );
  const { makeArgs } = build.pgGetArgDetailsFromParameters(resource as AnyType, own as AnyType);
  return (_: unknown, fieldArgs: FieldArgs) =>
    (resource as AnyType).execute([
      ...makeArgs(fieldArgs),
      {
        name: "page_size",
        pgCodec: TYPES.int,
        step: lambda(fieldArgs.getRaw("first"), (first) => pageSize(first, 100)),
      },
      { name: "page_start", pgCodec: TYPES.int, step: lambda(fieldArgs.getRaw("offset"), skip) },
    ]);
}

/** Removes the parameters of the page from the arguments of the field; `first` and `offset` only feed the plan. */
export function pagedArguments(args: Record<string, AnyType>): Record<string, AnyType> {
  const { pageSize: _size, pageStart: _start, first, offset, ...own } = args;
  return { ...own, first: { ...first, applyPlan: undefined }, offset: { ...offset, applyPlan: undefined } };
}
