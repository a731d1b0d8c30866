import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { createClient, isPlatError } from "../../index.ts";
import { shownCertificate, trust } from "../certificates.ts";
import { type Command, type Context, text, UsageError } from "../command.ts";
import { type Profile, profilesFile, writeProfile } from "../profile.ts";
import { operation, ORGANIZATIONS } from "../queries.ts";

const LOGIN = operation<
  { login: { token: string; expiresAt: string } },
  { input: { username: string; password: string; secondFactorCode?: string } }
>("mutation Login($input: LoginInput!) { login(input: $input) { token expiresAt } }");

/** Prompts on the terminal; secret input is not shown. */
async function ask(question: string, secret = false): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError(`${question} cannot be asked for without a terminal: see plat login --help.`);
  // The readline interface echoes the input to its output.
  const nowhere = new Writable({ write: (_text, _encoding, done) => done() });
  const lines = createInterface({
    input: process.stdin,
    output: secret ? nowhere : process.stderr,
    terminal: true,
  });
  // From here on, the terminal does not echo by itself.
  if (secret) process.stderr.write(`${question}: `);
  try {
    return await lines.question(secret ? "" : `${question}: `);
  } finally {
    lines.close();
    if (secret) process.stderr.write("\n");
  }
}

/**
 * The certificate to trust, in PEM; undefined if that of the service is signed by an authority that the
 * system trusts.
 */
async function trusted(context: Context, url: string): Promise<string | undefined> {
  const file = text(context, "certificate");
  if (file) return readFile(file, "utf8");
  if (!context.values["trust"]) return context.profile.certificate;
  const certificate = new X509Certificate((await shownCertificate(url)).raw);
  context.out.note(`Trusted from now on: ${certificate.subject}, SHA-256 ${certificate.fingerprint256}`);
  return certificate.toString();
}

async function tokenOf(context: Context, url: string): Promise<{ token: string; expiresAt?: string }> {
  const { values, readInput } = context;
  if (values["token-stdin"]) return { token: (await readInput()).trim() };
  const client = createClient({ url: new URL("/graphql", url).href, clientName: "plat" });
  const username = text(context, "username") ?? (await ask("Email address or user name"));
  const password = values["password-stdin"]
    ? (await readInput()).replace(/\r?\n$/, "")
    : await ask("Password", true);
  const secondFactorCode = text(context, "code");
  const input = { username, password, ...(secondFactorCode && { secondFactorCode }) };
  try {
    return (await client.request(LOGIN, { input })).login;
  } catch (error) {
    const { reason } = isPlatError(error, "UNAUTHENTICATED") ? error.details : { reason: undefined };
    if (reason !== "SECOND_FACTOR_REQUIRED" || secondFactorCode || !process.stdin.isTTY) throw error;
    const code = await ask("Code of the authenticator app");
    return (await client.request(LOGIN, { input: { ...input, secondFactorCode: code } })).login;
  }
}

export const login: Command = {
  name: "login",
  summary: "Sign in to a service, and keep the token for the next commands",
  usage: "[URL]",
  details:
    "Asks for the user name and the password, or takes an access token. The token is stored in a file that only you can read; no password is. Passwords and tokens are never arguments, which other users of the machine can see.",
  options: {
    username: { type: "string", short: "u", value: "NAME", description: "Email address or user name." },
    "password-stdin": { type: "boolean", description: "Read the password from standard input." },
    "token-stdin": {
      type: "boolean",
      description: "Read a token from standard input; nothing else is asked.",
    },
    code: { type: "string", value: "CODE", description: "Code of the second factor." },
    trust: {
      type: "boolean",
      description: "Trust the certificate that the service shows now, such as that of a local start.",
    },
    certificate: { type: "string", value: "FILE", description: "Trust the certificates of this PEM file." },
  },
  examples: [
    "plat login https://localhost:8443 --trust --username demo@plat.example",
    "plat login https://plat.example --token-stdin < token.txt",
  ],
  async run(context) {
    const { positionals, profile, out, env } = context;
    const url = positionals[0] ?? profile.url;
    if (!url) throw new UsageError("Say which service: plat login https://localhost:8443.");
    const certificate = await trusted(context, url);
    if (certificate && certificate !== profile.certificate) trust(certificate);
    const { token, expiresAt } = await tokenOf(context, url);
    const { viewer } = await createClient({ url: new URL("/graphql", url).href, token }).request(
      ORGANIZATIONS,
    );
    if (!viewer) throw new Error("The service does not know whose token this is.");
    const own = viewer.organizations.flatMap(({ organization: one }) => one ?? []);
    const organization = text(context, "organization") ?? (own.length === 1 ? own[0]!.slug : undefined);
    const fresh: Profile = {
      url,
      token,
      ...(organization && { organization }),
      ...(certificate && { certificate }),
    };
    await writeProfile(env, text(context, "profile") ?? env["PLAT_PROFILE"] ?? "default", fresh);
    if (out.json)
      out.data({
        url,
        username: viewer.username,
        organization: organization ?? null,
        expiresAt: expiresAt ?? null,
      });
    out.note(
      `Signed in to ${url} as ${viewer.fullName} (${viewer.username})${organization ? `, for ${organization}` : ""}. The token is in ${profilesFile(env)}.`,
    );
  },
};
