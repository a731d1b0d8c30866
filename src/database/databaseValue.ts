/**
 * Values returned by statements, and arguments of drivers with ambiguous overloads: the SQL comment of the function
 * documents the content. `any` is only used in this file and in src/schema/stackTypes.ts.
 */
export type DatabaseValue = any;
