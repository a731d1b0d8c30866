import { createHmac, randomBytes } from "node:crypto";
import type { LiveEvent } from "../../index.ts";
import { type Command, type Context, text, UsageError } from "../command.ts";
import { eventOptions, eventsOf } from "./eventsTail.ts";

/** The headers with the signature of a webhook, according to https://www.standardwebhooks.com. */
export function signed(id: string, body: string, secret: string, now = Date.now()): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

/** Pauses between attempts, in milliseconds. */
const WAITS = [0, 1_000, 5_000];

async function forward(event: LiveEvent, to: URL, secret: string, { out, signal }: Context): Promise<void> {
  const body = JSON.stringify(event);
  for (const [attempt, wait] of WAITS.entries()) {
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    if (signal.aborted) return;
    const started = Date.now();
    let result: string;
    let isTaken = false;
    try {
      const headers = { "content-type": "application/json", ...signed(event.id, body, secret) };
      const timeout = AbortSignal.timeout(15_000);
      const response = await fetch(to, {
        method: "POST",
        headers,
        body,
        redirect: "manual",
        signal: timeout,
      });
      await response.arrayBuffer();
      isTaken = response.ok;
      result = `HTTP ${response.status}`;
    } catch (error) {
      const { cause } = error as { cause?: Error };
      result = cause?.message ?? (error as Error).message;
    }
    const { sequence, type, id } = event;
    const said = { sequence, type, id, attempt: attempt + 1, result, milliseconds: Date.now() - started };
    if (out.json) out.line(JSON.stringify(said));
    else
      out.line(
        `${sequence.padStart(6)}  ${type.padEnd(28)}  ${result}  ${said.milliseconds} ms${attempt ? `  attempt ${attempt + 1}` : ""}`,
      );
    if (isTaken) return;
  }
}

function address(given: string | undefined): URL {
  if (!given) throw new UsageError("Say where to: --forward-to http://localhost:3000/webhooks.");
  const url = /^\d+$/.test(given)
    ? `http://localhost:${given}`
    : /^https?:\/\//.test(given)
      ? given
      : `http://${given}`;
  try {
    return new URL(url);
  } catch {
    throw new UsageError(`${given} is not an address.`);
  }
}

export const webhookListen: Command = {
  name: "webhook listen",
  summary: "Send the events of an organization to a receiver on this machine, as a webhook would",
  usage: "[NAME...]",
  details:
    "Follows the live feed, so no tunnel is needed, and posts each event with the headers and the signature of a webhook. A receiver that does not answer 2xx is asked twice more, and the next event follows. The events are those that you may see; a webhook gets those that its principal may see.",
  options: {
    "forward-to": { type: "string", value: "URL", description: "Address of the receiver, or its port." },
    secret: {
      type: "string",
      value: "SECRET",
      description: "Secret to sign with (whsec_…); PLAT_WEBHOOK_SECRET, or a new one that is shown.",
    },
    ...eventOptions,
    count: { type: "string", value: "NUMBER", description: "End after so many events." },
  },
  examples: [
    "plat webhook listen --forward-to localhost:3000/webhooks lead.*",
    "plat webhook listen --forward-to 3000 --since 1041",
  ],
  async run(context) {
    const { out, env } = context;
    const to = address(text(context, "forward-to"));
    const given = text(context, "secret") ?? env["PLAT_WEBHOOK_SECRET"];
    const secret = given ?? `whsec_${randomBytes(32).toString("base64")}`;
    if (!/^whsec_[A-Za-z0-9+/]{16,}=*$/.test(secret))
      throw new UsageError("A secret of a webhook is whsec_ and Base64, as createWebhook gives it.");
    const events = await eventsOf(context);
    if (!given) out.problem(`Signed with the secret ${secret}`);
    out.note(`Forwarding to ${to.href}; Ctrl-C ends it.`);
    let left = Number(text(context, "count") ?? Infinity);
    for await (const event of events) {
      await forward(event, to, secret, context);
      left -= 1;
      if (left <= 0) return;
    }
  },
};
