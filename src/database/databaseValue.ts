/**
 * What statements return, and what drivers take whose overloads cannot be told apart: the comment of the function in SQL says what is in it.
 * `any` stands in this file and in src/schema/stackTypes.ts alone.
 */
export type DatabaseValue = any;
