import { relative } from "node:path";
import type { DatabaseError } from "pg";
import { placeAt, offsetOfPosition, type Place, type SqlStatement } from "./sqlStatements.ts";

/** A SQL file. */
export interface SqlFile {
  /** Its absolute path. */
  path: string;
  text: string;
}

/** An error in a schema file, with its location; the message is complete. */
export class SchemaError extends Error {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** SQLSTATE. */
  readonly code: string | undefined;

  constructor(file: string, place: Place, error: Partial<DatabaseError> & { message: string }) {
    const path = relative(process.cwd(), file);
    const lines = [`${path}:${place.line}:${place.column}: ${error.message}`];
    if (error.detail) lines.push(`  Detail: ${error.detail}`);
    if (error.hint) lines.push(`  Hint: ${error.hint}`);
    // Its first line is the innermost context: the function that the statement called.
    if (error.where) lines.push(`  In: ${error.where.split("\n")[0]}`);
    super(lines.join("\n"), { cause: error });
    this.name = "SchemaError";
    this.file = path;
    this.line = place.line;
    this.column = place.column;
    this.code = error.code;
  }
}

/**
 * Error of a statement that was sent on its own, with its location in the file.
 * @param known location in the statement, if PostgreSQL reports it in other terms.
 */
export function schemaError(
  file: SqlFile,
  statement: SqlStatement,
  error: DatabaseError,
  known?: number,
): SchemaError {
  const within = Number(error.position)
    ? offsetOfPosition(statement.text, Number(error.position))
    : (known ?? offsetOfName(statement.text, error.message));
  return new SchemaError(file.path, placeAt(file.text, statement.offset + within), error);
}

/** Some statements, such as create policy, get no position: the name in the message is located instead. */
function offsetOfName(text: string, message: string): number {
  const name = /"([\w.]+)" (?:of relation .* )?does not exist/.exec(message)?.[1];
  const found = name ? new RegExp(`(?<!\\w)${name.replaceAll(".", "\\.")}(?!\\w)`).exec(text) : null;
  return found?.index ?? 0;
}
