import type { ExecutableStep } from "postgraphile/grafast";
import type { GraphQLOutputType } from "postgraphile/graphql";
import type { Member } from "./inputFields.ts";

/** A field of the root mutation type. */
export interface Operation {
  fieldName: string;
  inputTypeName: string;
  description: string;
  deprecationReason: string | undefined;
  /** The result column with the user whom the mutation signs in. */
  becomes?: string | undefined;
  /** It ignores idempotency keys and is executed each time. */
  eachTime?: boolean;
  /** Purpose of its files: a table of files, or the mutation itself. */
  uploadTarget: string;
  members(): Member[];
  /** Transforms of its arguments before the statement: the tags @transform. */
  transforms(): string[];
  outputType(): GraphQLOutputType;
  /** `$repeat` is the step of `idempotencyOf`, the identity of the request. */
  plan($input: ExecutableStep, $repeat: ExecutableStep): ExecutableStep;
}
