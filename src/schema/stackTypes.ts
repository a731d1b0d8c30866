/**
 * The boundary with the stack, where its types are less specific than our knowledge: the arguments of hooks depend on the catalog, which is
 * only known at run time. `any` is only used in this file and in src/database/databaseValue.ts; the lint rule no-explicit-any refuses it
 * elsewhere.
 */
import type { PgResource } from "postgraphile/@dataplan/pg";

/** A table or function with any columns, keys and parameters. */
export type AnyResource = PgResource<any, any, any, any, any>;

/** A plan step: its methods depend on what it selects, such as `get` of a row or `getSubplan` of a connection. */
export type AnyStep = any;

/** Builds parts of a statement during execution: conditions, orders, and the alias of its table. */
export type AnyQueryBuilder = any;

/** The context of a hook for a type or field; its fields depend on the plugin that created it. */
export type AnyScope = any;

/** A GraphQL type or PostgreSQL codec whose kind is known, or an entry of the catalog. */
export type AnyType = any;

/** The value of an argument, whose type the schema defines. */
export type AnyInput = any;
