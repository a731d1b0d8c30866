/**
 * One GraphQL schema for all databases of a process with equal catalogs, such as clones. Reading a catalog and building
 * the schema takes two seconds. The schema has no reference to the database or API for which it was built.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { signersOf, type GraphqlInstance } from "../../src/service/startGraphql.ts";
import { buildSchema, servedSchema } from "../../src/service/schemaOnly.ts";
import { baseUrl, jwtKeys } from "./api.ts";
import { readingFile, stateFile } from "./catalogFiles.ts";
import { catalogState } from "./catalogState.ts";

type Schema = ReturnType<typeof buildSchema>;
type Adaptor = ReturnType<typeof makeFusedAdaptor>;

const built = new Map<string, Schema>();

/**
 * Returns a function that creates an instance of a preset with the schema of the database.
 * @param isClone whether the database was just cloned from that of the migrated folder, whose state is known.
 */
export async function sharedSchema(
  connectionString: string,
  isClone: boolean,
): Promise<(preset: GraphileConfig.Preset) => GraphqlInstance> {
  const state = (isClone ? await stateOfClones() : undefined) ?? (await catalogState(connectionString));
  return servedSchema(built.get(state) ?? remember(state, buildOnce(state, connectionString)));
}

/** The state of clones, if it is stored; a database changed by a mutation test is not a clone. */
async function stateOfClones(): Promise<string | undefined> {
  const { PLAT_TEST_MIGRATED: migrated, PLAT_TEST_MUTANT: mutant } = process.env;
  if (!migrated || mutant) return undefined;
  return await readFile(stateFile(migrated), "utf8").catch(() => undefined);
}

async function buildOnce(state: string, connectionString: string): Schema {
  const migrated = process.env.PLAT_TEST_MIGRATED;
  const kept = migrated ? await keptReading(migrated) : undefined;
  return await build(connectionString, kept?.state === state ? kept : undefined);
}

/** Builds the schema of the migrated folder before its database is started, from the stored query results. */
export async function buildAhead(migrated: string): Promise<void> {
  const kept = await keptReading(migrated);
  if (kept) await remember(kept.state, build("", kept));
}

/** Stores the query results of the database of the migrated folder beside it. */
export async function keepReading(migrated: string, connectionString: string): Promise<void> {
  const reading: Reading = { state: await catalogState(connectionString), answers: {} };
  await remember(reading.state, build(connectionString, reading));
  const keep = async (file: string, text: string) => {
    const unfinished = `${file}.${process.pid}`;
    await writeFile(unfinished, text);
    await rename(unfinished, file);
  };
  await keep(stateFile(migrated), reading.state);
  await keep(readingFile(migrated), JSON.stringify(reading));
}

function remember(state: string, schema: Schema): Schema {
  built.set(state, schema);
  schema.catch(() => built.delete(state));
  return schema;
}

function build(connectionString: string, reading?: Reading): Schema {
  return buildSchema(connectionString, {
    ...signersOf({ jwtKeys, baseUrl }),
    ...(reading && { adaptor: remembering(reading) }),
  });
}

/** The results of all queries that building the schema needs. */
interface Reading {
  /** The state of its catalog. */
  state: string;
  /** By settings and query. */
  answers: Record<string, { rows: unknown[] }>;
}

async function keptReading(migrated: string): Promise<Reading | undefined> {
  const text = await readFile(readingFile(migrated), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Reading);
}

type Settings = Record<string, string | undefined> | null;
interface Question {
  text: string;
  values?: unknown[];
}

/** Sends a query to the database unless its result is known, and records the result. */
function remembering({ answers }: Reading): Adaptor {
  const fused = makeFusedAdaptor();
  return {
    ...fused,
    createWithPgClient(options, variant) {
      const real = fused.createWithPgClient(options, variant);
      const ask = async (settings: Settings, question: Question) =>
        (answers[JSON.stringify([settings, question.text, question.values])] ??= await real(
          settings,
          async (client) => {
            const { rows } = await client.query(question);
            return { rows: [...rows] };
          },
        ));
      const withClient = async (settings: Settings, work: (client: unknown) => unknown) =>
        await work({ query: (question: Question) => ask(settings, question) });
      return Object.assign(withClient, { release: real.release }) as typeof real;
    },
  };
}
