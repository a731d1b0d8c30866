import { readFile } from "node:fs/promises";
import { errorOf, PlatError } from "../../index.ts";
import { type Command, type Context, exitCodes, text, texts, UsageError } from "../command.ts";
import { operation } from "../queries.ts";

/** The parsed value if it is JSON, otherwise the text itself. */
function valueOf(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

async function variablesOf(context: Context): Promise<Record<string, unknown>> {
  const json = text(context, "variables");
  let variables: Record<string, unknown> = {};
  if (json !== undefined)
    try {
      variables = JSON.parse(json.startsWith("@") ? await readFile(json.slice(1), "utf8") : json);
    } catch (error) {
      throw new UsageError(`--variables takes a JSON object, or @FILE: ${(error as Error).message}.`);
    }
  for (const given of texts(context, "variable")) {
    const at = given.indexOf("=");
    if (at < 1) throw new UsageError(`--variable takes NAME=VALUE, and not ${given}.`);
    // `input.name` sets a field of an object.
    const path = given.slice(0, at).split(".");
    const last = path.pop()!;
    let place = variables;
    for (const part of path) place = (place[part] ??= {}) as Record<string, unknown>;
    place[last] = valueOf(given.slice(at + 1));
  }
  if (context.values["dry-run"]) variables["input"] = { ...(variables["input"] as object), dryRun: true };
  return variables;
}

async function documentOf({ positionals, readInput }: Context): Promise<string> {
  const [given] = positionals;
  if (given === undefined || given === "-") return readInput();
  if (/[{(]/.test(given)) return given;
  try {
    return await readFile(given, "utf8");
  } catch {
    throw new UsageError(`${given} is neither an operation nor a file that can be read.`);
  }
}

export const query: Command = {
  name: "query",
  summary: "Send a query or a mutation, and write its data as JSON",
  usage: "[TEXT | FILE | -]",
  details:
    "The operation is an argument, a file, or standard input. Errors go to standard error with their codes; the exit code is 1 if there are any. A mutation is sent again after a lost connection, and has its effect once.",
  options: {
    variables: { type: "string", value: "JSON", description: "Variables as a JSON object, or @FILE." },
    variable: {
      type: "string",
      short: "v",
      value: "NAME=VALUE",
      multiple: true,
      description: "One variable, JSON or text; NAME can be a path such as input.name.",
    },
    operation: { type: "string", value: "NAME", description: "Which operation of the document to run." },
    "dry-run": {
      type: "boolean",
      description: "Set dryRun in $input: nothing is kept; shows the effects on standard error.",
    },
    anonymous: { type: "boolean", description: "Send no token, as a visitor." },
    full: { type: "boolean", description: "Write the whole answer: data, errors and extensions." },
  },
  examples: [
    "plat query '{ viewer { fullName } }'",
    "plat query 'query ($id: ID!) { lead(id: $id) { name status } }' -v id=01a2…",
    "plat query --dry-run 'mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }' -v input.projectId=larkfield-gardens -v input.name=Ada",
  ],
  async run(context) {
    const { out, values, signal } = context;
    const document = operation<unknown, object>(await documentOf(context));
    const variables = await variablesOf(context);
    const client = await context.connect({ anonymous: values["anonymous"] === true });
    const operationName = text(context, "operation");
    const answer = await client.execute(document, variables, {
      signal,
      ...(operationName && { operationName }),
    });
    if (values["full"]) {
      const { data, errors, extensions } = answer;
      out.data({ data, ...(errors.length > 0 && { errors }), extensions });
    } else if (answer.data !== null) out.data(answer.data);
    const { effects } = answer.extensions as { effects?: unknown };
    if (values["dry-run"] && effects && !values["full"]) out.problem(JSON.stringify(effects, undefined, 2));
    if (answer.errors.length === 0) return;
    for (const { message, path, extensions } of answer.errors)
      out.problem(`${extensions?.code ?? "ERROR"}${path ? ` at ${path.join(".")}` : ""}: ${message}`);
    if (answer.status === 401) throw new PlatError("UNAUTHENTICATED", errorOf(answer).message);
    return exitCodes.failed;
  },
};
