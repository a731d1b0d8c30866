import type { ClientBase, DatabaseError } from "pg";
import { attempt } from "./dependencyOrder.ts";
import type { ObjectFile } from "./objects.ts";
import { SchemaError } from "./schemaError.ts";
import { offsetOfPosition, placeAt } from "./sqlStatements.ts";

interface Routine {
  oid: string;
  schema: string;
  name: string;
  signature: string;
  body: string;
  validator: string;
}

/** Maximum number of errors reported at once. */
const mostErrors = 20;

/**
 * Has PostgreSQL check the bodies of all our functions, which were not checked on creation.
 * @throws SchemaError of the first error, with the others in its message.
 */
export async function validateFunctions(client: ClientBase, files: readonly ObjectFile[]): Promise<void> {
  const { rows } = await client.query<Routine>(`
    select p.oid, n.nspname as schema, p.proname as name, p.oid::regprocedure::text as signature, p.prosrc as body,
      l.lanvalidator::regproc::text as validator
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    join pg_language l on l.oid = p.prolang
    where n.nspname in ('app_public', 'app_hidden', 'app_private') and l.lanname in ('sql', 'plpgsql')
    order by p.oid`);
  await client.query("set local check_function_bodies = on");
  const validators = [...new Set(rows.map(({ validator }) => validator))];
  const calls = (routines: Routine[]) =>
    validators.map((validator) => {
      const oids = routines.filter((routine) => routine.validator === validator).map(({ oid }) => oid);
      return `select ${validator}(oid::oid) from unnest(array[${oids.join(", ")}]::oid[]) as oid`;
    });
  const errors: SchemaError[] = [];
  if (await attempt(client, calls(rows).join(";\n")))
    for (const routine of rows) {
      const error = await attempt(client, calls([routine]).join(";\n"));
      if (error) errors.push(errorOfBody(files, routine, error));
      if (errors.length === mostErrors) break;
    }
  await client.query("set local check_function_bodies = off");
  const [first, ...others] = errors;
  if (!first) return;
  first.message = [first, ...others].map(({ message }) => message).join("\n");
  throw first;
}

function errorOfBody(
  files: readonly ObjectFile[],
  { schema, name, signature, body }: Routine,
  error: DatabaseError,
): SchemaError {
  const head = new RegExp(`\\b(?:function|procedure)\\s+${schema}\\.${name}\\s*\\(`, "i");
  for (const file of files)
    for (const statement of file.definitions) {
      const inside = head.test(statement.text) ? statement.text.indexOf(body) : -1;
      if (inside < 0) continue;
      const start = statement.offset + inside;
      return new SchemaError(file.path, placeAt(file.text, start + offsetInBody(body, error)), error);
    }
  return new SchemaError(
    "migrations",
    { line: 1, column: 1 },
    {
      ...error,
      message: `${signature}, which a generator or a migration made: ${error.message}`,
    },
  );
}

function offsetInBody(body: string, { internalPosition, where = "" }: DatabaseError): number {
  if (internalPosition) return offsetOfPosition(body, Number(internalPosition));
  const line = Number(/\bnear line (\d+)/.exec(where)?.[1] ?? 1);
  return (
    body
      .split("\n")
      .slice(0, line - 1)
      .join("\n").length + (line > 1 ? 1 : 0)
  );
}
