import { randomBytes, randomUUID } from "node:crypto";
import type { Attack } from "../attack.ts";

const requests: (() => [
  path: string,
  options?: { method: string; headers?: Record<string, string>; body?: string },
])[] = [
  () => [`/sign/${randomBytes(24).toString("base64url")}`],
  () => [`/calendars/${randomBytes(24).toString("base64url")}.ics`],
  () => [`/confirm/${randomBytes(24).toString("base64url")}`],
  () => [`/integrations/callback?state=${randomUUID()}&code=a`, { method: "POST" }],
  () => [
    `/webhooks/signing/${randomUUID()}`,
    { method: "POST", headers: { "x-docusign-signature-1": "a" }, body: "{}" },
  ],
  () => ["/readyz"],
];

/**
 * Pages outside of the API query the database before they know whether the link, the provider or the user
 * exists.
 */
export default {
  title: "links, feeds and notices that nobody sent, 12 at once each",
  async play(world) {
    await Promise.all(
      [...requests, ...requests].map(async (request) => {
        const answer = await world.request(...request()).catch(() => undefined);
        if (answer && answer.status >= 500) throw new Error(`A page answered ${answer.status}.`);
      }),
    );
  },
} satisfies Attack;
