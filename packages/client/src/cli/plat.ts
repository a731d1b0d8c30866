#!/usr/bin/env node
/** The program `plat`; see docs/command-line.md. */
import { readFile } from "node:fs/promises";
import { createClient, PlatError } from "../index.ts";
import { commandOf, parse } from "./arguments.ts";
import { trust } from "./certificates.ts";
import { type Command, type Context, exitCodes, text, UsageError } from "./command.ts";
import { commands } from "./commands/index.ts";
import { commandHelp, help } from "./help.ts";
import { Output } from "./output.ts";
import { type Profile, readProfile } from "./profile.ts";
import { ORGANIZATION, ORGANIZATIONS } from "./queries.ts";

const { env } = process;

async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

/** The version of the package. The relative path of package.json is the same for sources and compiled files. */
async function version(): Promise<string> {
  return JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")).version;
}

/** The profile, overridden by options and environment variables. */
async function profileOf(given: Pick<Context, "values">): Promise<Profile> {
  const stored = await readProfile(env, text(given, "profile") ?? env["PLAT_PROFILE"] ?? "default");
  const url = text(given, "url") ?? env["PLAT_URL"];
  const organization = text(given, "organization") ?? env["PLAT_ORGANIZATION"];
  // A stored token is only valid for the service that issued it.
  const base: Profile = url === undefined || url === stored.url ? stored : {};
  return {
    ...base,
    ...(url && { url }),
    ...(env["PLAT_TOKEN"] && { token: env["PLAT_TOKEN"] }),
    ...(organization && { organization }),
  };
}

/** The service URL in the format of profiles, including the path of the endpoint. */
function endpoint(url: string): string {
  try {
    return new URL("graphql", url.endsWith("/") ? url : `${url}/`).href;
  } catch {
    throw new UsageError(`${url} is not an address: give one such as https://localhost:8443.`);
  }
}

function contextOf(
  parsed: Pick<Context, "values" | "positionals">,
  profile: Profile,
  signal: AbortSignal,
): Context {
  if (profile.certificate) trust(profile.certificate);
  const connect: Context["connect"] = async ({ anonymous = false } = {}) => {
    if (!profile.url) throw new UsageError("Say which service: `plat login URL`, --url or PLAT_URL.");
    if (!anonymous && !profile.token)
      throw new PlatError("UNAUTHENTICATED", "You are not signed in: run `plat login`, or set PLAT_TOKEN.");
    return createClient({
      url: endpoint(profile.url),
      token: anonymous ? undefined : profile.token,
      clientName: "plat",
      retries: { attempts: 3 },
    });
  };
  const organization = async () => {
    const client = await connect();
    if (profile.organization) {
      const { organization: found } = await client.request(ORGANIZATION, { id: profile.organization });
      if (found) return found.id;
      throw new UsageError(`There is no organization ${profile.organization} that you may see.`);
    }
    const { viewer } = await client.request(ORGANIZATIONS);
    const ids = (viewer?.organizations ?? []).flatMap(({ organization: one }) => one ?? []);
    if (ids.length === 1) return ids[0]!.id;
    throw new UsageError(
      ids.length === 0
        ? "You are in no organization: name one that you may see with --organization."
        : `Name the organization with --organization: ${ids.map(({ slug }) => slug).join(", ")}.`,
    );
  };
  const out = new Output(process.stdout, process.stderr, parsed.values["json"] === true);
  return { ...parsed, out, env, signal, profile, connect, organization, readInput };
}

/** Reports an error, and returns its exit code. */
function tell(error: unknown, command: Command | undefined): number {
  const say = (message: string) => void process.stderr.write(`${message}\n`);
  if (error instanceof UsageError) {
    say(`${error.message}\nRun \`plat ${command ? `${command.name} ` : ""}--help\` for the usage.`);
    return exitCodes.usage;
  }
  if (error instanceof PlatError) {
    const { code, message, errors, requestId } = error;
    const lines = errors.length > 1 ? errors.map((one) => one.message) : [message];
    const { cause } = error as { cause?: { cause?: Error; message?: string } };
    if (code === "NETWORK_ERROR" && cause) lines.push(cause.cause?.message ?? cause.message ?? "");
    say(`${code}: ${lines.filter(Boolean).join(" ")}${requestId ? ` (request ${requestId})` : ""}`);
    if (code === "UNAUTHENTICATED") return exitCodes.unauthenticated;
    return ["NETWORK_ERROR", "UNEXPECTED_ANSWER", "UNAVAILABLE"].includes(code)
      ? exitCodes.unreachable
      : exitCodes.failed;
  }
  say((error as Error).message ?? String(error));
  return exitCodes.failed;
}

async function main(args: readonly string[]): Promise<number> {
  const command = commandOf(commands, args);
  const interrupted = new AbortController();
  const stop = () => interrupted.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  // The reader of the pipe, such as `head`, has closed it.
  process.stdout.on("error", () => process.exit(0));
  try {
    const parsed = parse(args, command);
    if (parsed.values["version"]) {
      process.stdout.write(`${await version()}\n`);
      return 0;
    }
    if (!command && parsed.positionals.length > 0)
      throw new UsageError(`There is no command ${parsed.positionals.join(" ")}.`);
    if (!command || parsed.values["help"]) {
      process.stdout.write(`${command ? commandHelp(command) : help(commands)}\n`);
      return 0;
    }
    const code = await command.run(contextOf(parsed, await profileOf(parsed), interrupted.signal));
    return code ?? (interrupted.signal.aborted ? exitCodes.interrupted : 0);
  } catch (error) {
    if (interrupted.signal.aborted) return exitCodes.interrupted;
    return tell(error, command);
  }
}

process.exitCode = await main(process.argv.slice(2));
