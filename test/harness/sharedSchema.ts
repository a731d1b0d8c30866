/**
 * One GraphQL schema for all databases of a process whose catalogs are alike, as those of clones are. To read a catalog and to build
 * the schema takes two seconds; it holds nothing of the database or the API it was built for.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { signs, type GraphqlInstance } from "../../src/service/startGraphql.ts";
import { buildSchema, serving } from "../../src/service/schemaAlone.ts";
import { baseUrl, jwtKeys } from "./api.ts";
import { readingFile, stateFile } from "./catalogFiles.ts";
import { catalogState } from "./catalogState.ts";

type Schema = ReturnType<typeof buildSchema>;
type Adaptor = ReturnType<typeof makeFusedAdaptor>;

const built = new Map<string, Schema>();

/**
 * What makes an instance of a preset whose schema is that of the database.
 * @param isClone whether it was cloned a moment ago from that of the migrated folder, whose state is known.
 */
export async function sharedSchema(
  connectionString: string,
  isClone: boolean,
): Promise<(preset: GraphileConfig.Preset) => GraphqlInstance> {
  const state = (isClone ? await stateOfClones() : undefined) ?? (await catalogState(connectionString));
  return serving(built.get(state) ?? remember(state, buildOnce(state, connectionString)));
}

/** The state of clones, where it is kept; a mutant is none any more. */
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

/** Builds the schema of the migrated folder while its database is not there yet, where what it says of itself is kept. */
export async function buildAhead(migrated: string): Promise<void> {
  const kept = await keptReading(migrated);
  if (kept) await remember(kept.state, build("", kept));
}

/** Keeps what the database of the migrated folder says of itself beside it. */
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
    ...signs({ jwtKeys, baseUrl }),
    ...(reading && { adaptor: remembering(reading) }),
  });
}

/** What a database has answered to whom builds the schema: all that it takes to build it again. */
interface Reading {
  /** The state of its catalog. */
  state: string;
  /** By settings and question. */
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

/** Asks a database what it has not answered yet, and notes the answer. */
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
