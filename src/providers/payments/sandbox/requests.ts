/** Handles a request: authentication, the idempotency key, and the transaction. */
import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import type { WorkPool } from "../../../database/workConnections.ts";
import { ApiError } from "./sandboxErrors.ts";
import { expandFields, publicFields, type Reply } from "./sandboxPayments.ts";
import { withStore, type Store } from "./sandboxStore.ts";
import type { DatabaseValue } from "../../../database/databaseValue.ts";

export type Handler = (store: Store, params: DatabaseValue, request: Request) => Promise<Reply | object>;

const isReply = (value: object): value is Reply => "status" in value && "body" in value;

function refuse(response: Response, error: ApiError): void {
  response.status(error.status).json({ error: error.body });
}

function mustBe(request: Request, secretKey: string, clients: boolean): void {
  const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  if (!key)
    throw new ApiError(
      401,
      "invalid_request_error",
      "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth.",
    );
  if (key === secretKey || (clients && key.startsWith("pk_test_"))) return;
  throw new ApiError(401, "invalid_request_error", `Invalid API Key provided: ${key.slice(0, 8)}***`);
}

/** @param done is called after each commit, so that recorded events are delivered. */
export function requests({ pool, secretKey, done }: { pool: WorkPool; secretKey: string; done(): void }) {
  return (handle: Handler, { clients = false } = {}): RequestHandler =>
    async (request, response) => {
      response.setHeader("Request-Id", `req_${Date.now().toString(36)}`);
      try {
        mustBe(request, secretKey, clients);
        const { status, body, replayed } = await answer(pool, request, handle);
        if (replayed) response.setHeader("Idempotent-Replayed", "true");
        response.status(status).json(body);
        done();
      } catch (error) {
        if (error instanceof ApiError) return refuse(response, error);
        refuse(response, new ApiError(500, "api_error", "The sandbox failed."));
      }
    };
}

async function answer(
  pool: WorkPool,
  request: Request,
  handle: Handler,
): Promise<{ status: number; body: unknown; replayed?: boolean }> {
  const params: DatabaseValue = { ...(request.query as object), ...(request.body as object) };
  const key = request.method === "POST" ? request.get("idempotency-key") : undefined;
  const carryOut = async (store: Store) => {
    const result = await handle(store, params, request);
    const { status, body } = isReply(result) ? result : { status: 200, body: result };
    return {
      status,
      body: status === 200 ? await expandFields(store, body, params.expand) : publicFields(body),
    };
  };
  if (key === undefined) return withStore(pool, carryOut);

  const fingerprint = createHash("sha256")
    .update(JSON.stringify([request.method, request.path, params]))
    .digest("hex");
  // The changes and the response are one transaction, which also releases the lock if the process dies.
  return withStore(pool, async (store, client) => {
    const { rows: locks } = await client.query<{ mine: boolean }>(
      "select pg_try_advisory_xact_lock(hashtextextended('sandbox ' || $1, 0)) as mine",
      [key],
    );
    if (!locks[0]!.mine)
      throw new ApiError(
        409,
        "idempotency_error",
        "There is currently another in-progress request using this Idempotent Key.",
        { code: "idempotency_key_in_use" },
      );
    const { rows } = await client.query<{ fingerprint: string; status: number; body: unknown }>(
      "select fingerprint, status, body from app_private.sandbox_requests where key = $1",
      [key],
    );
    const known = rows[0];
    if (known && known.fingerprint !== fingerprint)
      throw new ApiError(
        400,
        "idempotency_error",
        `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`,
      );
    if (known) return { status: known.status, body: known.body, replayed: true };
    const { status, body } = await carryOut(store);
    await client.query(
      "insert into app_private.sandbox_requests (key, fingerprint, status, body) values ($1, $2, $3, $4)",
      [key, fingerprint, status, JSON.stringify(body)],
    );
    return { status, body };
  });
}
