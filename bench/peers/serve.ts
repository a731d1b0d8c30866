/** Common parts of all contestants other than the service: settings, verification of tokens, and the listener. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Server } from "node:https";
import type { AddressInfo } from "node:net";

/** Settings of a contestant, from its environment. */
export const settings = {
  databaseUrl: process.env.PEERS_DATABASE_URL!,
  tls: { cert: process.env.PEERS_CERT!, key: process.env.PEERS_KEY! },
  secret: process.env.PEERS_SECRET!,
  poolSize: Number(process.env.PEERS_POOL_SIZE ?? 10),
};

/** The claims of a token. */
export interface Claims {
  sub: string;
  org: string;
  exp: number;
}

const hmac = (secret: string, text: string) => createHmac("sha256", secret).update(text).digest("base64url");
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token (JWT, HS256) of a viewer. */
export function signToken(secret: string, claims: Claims): string {
  const text = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded(claims)}`;
  return `${text}.${hmac(secret, text)}`;
}

/**
 * The claims of a token, verified for each request; undefined without one.
 * @throws Error for a forged or expired token
 */
export function readToken(authorization: string | undefined): Claims | undefined {
  if (authorization === undefined) return undefined;
  const token = authorization.slice("Bearer ".length);
  const dot = token.lastIndexOf(".");
  const given = Buffer.from(token.slice(dot + 1));
  const made = Buffer.from(hmac(settings.secret, token.slice(0, dot)));
  if (given.length !== made.length || !timingSafeEqual(given, made)) throw new Error("Bad token");
  const claims = JSON.parse(
    Buffer.from(token.slice(token.indexOf(".") + 1, dot), "base64url").toString(),
  ) as Claims;
  if (claims.exp * 1000 < Date.now()) throw new Error("The token is over");
  return claims;
}

/** Settings of a transaction for a viewer. */
export const claimSettings = (claims: Claims | undefined): Record<string, string> => ({
  role: claims ? "plat_user" : "plat_anonymous",
  "peers.user_id": claims?.sub ?? "",
  "peers.organization_id": claims?.org ?? "",
  // Used by the functions of the service, if they are called.
  "plat.user_id": claims?.sub ?? "",
  "plat.channel": "API",
});

/** Sends the port to the benchmark, and exits together with it. */
export function ready(port: number): void {
  process.on("disconnect", () => process.exit(0));
  process.send!({ port });
}

/** Listens on a free local port. */
export async function listen(server: Server): Promise<void> {
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  ready((server.address() as AddressInfo).port);
}
