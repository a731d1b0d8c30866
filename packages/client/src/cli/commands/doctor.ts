import { isPlatError } from "../../index.ts";
import { shownCertificate } from "../certificates.ts";
import { type Command, type Context, exitCodes, UsageError } from "../command.ts";
import { ORGANIZATIONS } from "../queries.ts";

interface Finding {
  check: string;
  ok: boolean;
  message: string;
}

const DAY_MS = 86_400_000;
/** Clock difference in milliseconds below which signatures and codes of second factors are accepted. */
const CLOCK_MS = 30_000;

async function reach({ profile }: Context): Promise<Finding[]> {
  const started = Date.now();
  let response: Response;
  try {
    response = await fetch(new URL("/healthz", profile.url), { signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
  } catch (error) {
    const reason = (error as { cause?: Error }).cause?.message ?? (error as Error).message;
    const hint = /self.signed|certificate/i.test(reason) ? " Trust it with `plat login --trust`." : "";
    return [{ check: "service", ok: false, message: `${profile.url} cannot be reached: ${reason}.${hint}` }];
  }
  const took = Date.now() - started;
  const findings = [
    {
      check: "service",
      ok: response.ok,
      message: `${profile.url} answered HTTP ${response.status} in ${took} ms`,
    },
  ];
  const date = Date.parse(response.headers.get("date") ?? "");
  // The header is in whole seconds.
  const apart = Math.abs(Date.now() - took / 2 - date - 500);
  if (!Number.isNaN(date))
    findings.push({
      check: "clock",
      ok: apart < CLOCK_MS,
      message:
        apart < CLOCK_MS
          ? "The clocks agree"
          : `The clocks differ by ${Math.round(apart / 1_000)} s: set this machine's`,
    });
  return findings;
}

async function certificate({ profile }: Context): Promise<Finding[]> {
  if (!profile.url?.startsWith("https:")) return [];
  const shown = await shownCertificate(profile.url);
  const days = Math.floor((Date.parse(shown.validTo) - Date.now()) / DAY_MS);
  return [
    { check: "certificate", ok: days >= 14, message: `The certificate is valid for ${days} more days` },
  ];
}

async function token(context: Context): Promise<Finding[]> {
  if (!context.profile.token)
    return [{ check: "token", ok: false, message: "You are not signed in: plat login" }];
  try {
    const { viewer } = await (await context.connect()).request(ORGANIZATIONS);
    const roles = (viewer?.organizations ?? []).map(
      ({ role, organization }) => `${role} of ${organization?.slug}`,
    );
    return [
      {
        check: "token",
        ok: true,
        message: `Signed in as ${viewer?.username}, ${roles.join(", ") || "in no organization"}`,
      },
    ];
  } catch (error) {
    if (!isPlatError(error)) throw error;
    return [{ check: "token", ok: false, message: `${error.code}: ${error.message}` }];
  }
}

/** Whether events arrive: a proxy that buffers responses delays them. */
async function feed(context: Context): Promise<Finding[]> {
  const { profile } = context;
  if (!profile.token) return [];
  const url = new URL("/events/stream", profile.url);
  url.searchParams.set("organizationId", await context.organization());
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${profile.token}`, accept: "text/event-stream" },
    signal: AbortSignal.timeout(10_000),
  });
  const first = await response.body?.getReader().read();
  const ok = response.ok && first?.value !== undefined;
  return [
    {
      check: "live events",
      ok,
      message: ok ? "The live feed arrives" : `The live feed answers HTTP ${response.status}`,
    },
  ];
}

export const doctor: Command = {
  name: "doctor",
  summary: "Check the connection: service, certificate, clock, token, live events",
  details:
    "Checks what a client can see. `npm run doctor` on the machine of the service checks the service itself. The exit code is 1 if anything is wrong.",
  async run(context) {
    const { out, profile } = context;
    if (!profile.url) throw new UsageError("Say which service: `plat login URL`, --url or PLAT_URL.");
    const findings = await reach(context);
    if (findings[0]!.ok)
      for (const check of [certificate, token, feed])
        try {
          findings.push(...(await check(context)));
        } catch (error) {
          findings.push({ check: check.name, ok: false, message: (error as Error).message });
        }
    out.table(
      ["check", "", ""],
      findings.map(({ check, ok, message }) => [check, ok ? "ok" : "wrong", message]),
      findings,
    );
    return findings.every(({ ok }) => ok) ? 0 : exitCodes.failed;
  },
};
