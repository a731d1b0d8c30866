import type { ExecutableStep } from "postgraphile/grafast";
import type { GraphQLOutputType } from "postgraphile/graphql";
import type { Member } from "./inputFields.ts";

/** A field of the root mutation. */
export interface Operation {
  fieldName: string;
  inputTypeName: string;
  description: string;
  deprecationReason: string | undefined;
  /** The column of the answer whose user the operation signs in. */
  becomes?: string | undefined;
  /** Idempotency keys mean nothing to it: it is carried out each time. */
  eachTime?: boolean;
  /** What its files are for: a table of files, or the operation itself. */
  uploadTarget: string;
  members(): Member[];
  /** What is done with its arguments before its statement: the tags @transform. */
  transforms(): string[];
  outputType(): GraphQLOutputType;
  /** `$repeat` is the step of `idempotencyOf`: what tells a repeat of the request from a new one. */
  plan($input: ExecutableStep, $repeat: ExecutableStep): ExecutableStep;
}
