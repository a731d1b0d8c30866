/** Code generators: their output for the schema compiles, and works with @plat/client. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { scalarTypes } from "@plat/client/schema";
import type { Setting } from "./setting.ts";

const run = promisify(execFile);
const bin = (name: string) => join(import.meta.dirname, "node_modules/.bin", name);

/** A folder for a program that can use all packages installed here. */
async function programIn(folder: string, name: string, files: Record<string, string>): Promise<string> {
  const program = join(folder, name);
  await mkdir(program, { recursive: true });
  await symlink(join(import.meta.dirname, "node_modules"), join(program, "node_modules"));
  for (const [file, text] of Object.entries({ "package.json": '{ "type": "module" }', ...files }))
    await writeFile(join(program, file), text);
  return program;
}

const compilerOptions = {
  target: "es2022",
  lib: ["es2022", "dom", "dom.iterable"],
  module: "esnext",
  moduleResolution: "bundler",
  allowImportingTsExtensions: true,
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  types: [],
};

async function compile(program: string): Promise<void> {
  const { stdout } = await run(bin("tsc"), ["-p", program]).catch((error: { stdout: string }) => error);
  assert.equal(stdout, "");
}

/** Sends the document, and fails to compile if its types differ from those of the schema. */
const use = (document: string) => `
const plat = createClient({ url: ${"URL"}, token: ${"TOKEN"}, print: print as never });
const { leadsConnection } = await plat.request(${document}, { first: 2 });
const leads = leadsConnection!.nodes!;
const name: string | null = leads[0]?.name ?? null;
const budget: string | null | undefined = leads[0]?.budgetMax;
// @ts-expect-error a lead has no such field
leads[0]?.shoeSize;
// @ts-expect-error a number is wanted
await plat.request(${document}, { first: "2" }).catch(() => {});
console.log(JSON.stringify({ count: leads.length, name, budget: budget ?? null }));
`;
const text = "query Leads($first: Int) { leadsConnection(first: $first) { nodes { id name budgetMax } } }";

const head = ({ url, token }: Setting) =>
  `const URL = ${JSON.stringify(url)}, TOKEN = ${JSON.stringify(token)};
import { createClient } from "@plat/client";
import { print } from "graphql";
`;

async function answers(program: string): Promise<void> {
  const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", "main.ts"], {
    cwd: program,
  });
  assert.ok((JSON.parse(stdout.trim().split("\n").at(-1)!) as { count: number }).count > 0);
}

export async function codegen(setting: Setting): Promise<string> {
  const config = {
    schema: setting.schemaFile,
    documents: ["main.ts"],
    generates: {
      "./gql/": {
        preset: "client",
        config: { documentMode: "string", scalars: scalarTypes, useTypeImports: true, enumsAsTypes: true },
      },
    },
  };
  const program = await programIn(setting.folder, "codegen", {
    "codegen.json": JSON.stringify(config),
    "main.ts": `${head(setting)}import { graphql } from "./gql/gql.ts";
const Leads = graphql(\`${text}\`);
${use("Leads")}`,
    "tsconfig.json": JSON.stringify({ compilerOptions, include: ["main.ts", "gql"] }),
  });
  await run(bin("graphql-codegen"), ["--config", "codegen.json"], { cwd: program });
  // Modules are imported without an extension, as bundlers permit.
  await compile(program);
  await run(bin("esbuild"), ["main.ts", "--bundle", "--format=esm", "--platform=node", "--outfile=main.js"], {
    cwd: program,
  });
  const { stdout } = await run(process.execPath, ["main.js"], { cwd: program });
  assert.ok((JSON.parse(stdout.trim().split("\n").at(-1)!) as { count: number }).count > 0);
  return 'client preset with `documentMode: "string"` and the scalars of the package: compiles, and runs by @plat/client';
}

export async function gqlTada(setting: Setting): Promise<string> {
  const plugins = [
    { name: "gql.tada/ts-plugin", schema: setting.schemaFile, tadaOutputLocation: "./graphql-env.d.ts" },
  ];
  const program = await programIn(setting.folder, "gqlTada", {
    "graphql.ts": `import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./graphql-env.d.ts";
export const graphql = initGraphQLTada<{ introspection: introspection; scalars: { Decimal: string; DateTime: string; ID: string } }>();
`,
    "main.ts": `${head(setting)}import { graphql } from "./graphql.ts";
const Leads = graphql(\`${text}\`);
${use("Leads")}`,
    "tsconfig.json": JSON.stringify({ compilerOptions: { ...compilerOptions, plugins }, include: ["*.ts"] }),
  });
  await run(bin("gql.tada"), ["generate-output"], { cwd: program });
  await compile(program);
  await answers(program);
  return "types from the served schema without generated documents: compiles, and runs by @plat/client";
}
