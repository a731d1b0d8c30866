/**
 * The boundary with the stack, where its types say less than is known here: what a hook is given follows from the catalog, which there is at run
 * time only. `any` stands in this file alone, and in src/database/databaseValue.ts; the lint rule no-explicit-any refuses it elsewhere.
 */
import type { PgResource } from "postgraphile/@dataplan/pg";

/** A table or function, whatever its columns, keys and parameters. */
export type AnyResource = PgResource<any, any, any, any, any>;

/** A step of a plan: its methods depend on what it selects, such as `get` of a row or `getSubplan` of a connection. */
export type AnyStep = any;

/** What writes a statement while it is executed: conditions, orders, and the alias of its table. */
export type AnyQueryBuilder = any;

/** What a hook is told of the type or field that it is called for; which members there are depends on the plugin that made it. */
export type AnyScope = any;

/** A type of GraphQL or a codec of PostgreSQL of which it is known what kind it is, or a member of the catalog. */
export type AnyType = any;

/** The value of an argument, of which the schema says what it is. */
export type AnyInput = any;
