/**
 * A payment processor for development and tests, in the process of the service: it speaks the HTTP API of the real one, on an
 * address of this machine, so that the same client does the same against both. No money moves, and no card number is taken.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import type { Pool } from "pg";
import { workPoolOf } from "../../../database/workConnections.ts";
import type { Logger } from "../../../base/log.ts";
import * as accounts from "./accounts.ts";
import { attach, createPaymentMethod, detach } from "./cards.ts";
import { startDeliveries, type Endpoint } from "./deliveries.ts";
import { invalid } from "./sandboxErrors.ts";
import { authenticationPage, donePage } from "./cardPage.ts";
import * as payments from "./payments.ts";
import { requests, type Handler } from "./requests.ts";
import { withStore } from "./store.ts";

export interface SandboxOptions {
  /** The connection of plat_worker to the database that it keeps its state in. */
  connectionString: string;
  /** Connections that it shares with others; one of its own where omitted. */
  pool?: Pick<Pool, "query" | "connect"> | undefined;
  /** Where it delivers events; nowhere, as long as another process does, where omitted. */
  endpoint?: Endpoint | undefined;
  port?: number;
  log: Pick<Logger, "debug" | "warn">;
}

export interface Sandbox {
  /** Its address, without a trailing slash. */
  api: string;
  secretKey: string;
  /** Delivers what is due. */
  kick(): Promise<void>;
  /** From now on its events go there. */
  deliverTo(endpoint: Endpoint): void;
  stop(): Promise<void>;
}

export async function startSandbox({
  connectionString,
  pool: shared,
  endpoint,
  port = 0,
  log,
}: SandboxOptions): Promise<Sandbox> {
  const pool = workPoolOf(shared, {
    connectionString,
    max: 1,
    applicationName: "plat-payments-sandbox",
    log,
  });
  const secretKey = `sk_test_sandbox${randomBytes(12).toString("hex")}`;
  const deliveries = startDeliveries(pool, endpoint, log);
  const on = requests({ pool, secretKey, done: () => void deliveries.kick() });
  const app = express();
  app.disable("x-powered-by");
  app.use(express.urlencoded({ extended: true, limit: "256kb", parameterLimit: 500 }));
  app.set("query parser", "extended");
  let api = "";

  const route = (method: "get" | "post" | "delete", path: string, handle: Handler, clients = false) =>
    app[method](path, on(handle, { clients }));
  const id = (request: express.Request, name = "id") => String(request.params[name]);
  const read =
    (kind: string): Handler =>
    (store, _params, request) =>
      store.get(kind, id(request));

  route("post", "/v1/customers", (store, { email = null, name = null, metadata = {} }) =>
    store.put(store.make("customer", "cus", { email, name, metadata })),
  );
  route("post", "/v1/payment_methods", createPaymentMethod, true);
  route("get", "/v1/payment_methods/:id", read("payment_method"));
  route("post", "/v1/payment_methods/:id/attach", (store, { customer }, request) =>
    attach(store, id(request), String(customer)),
  );
  route("post", "/v1/payment_methods/:id/detach", (store, _params, request) => detach(store, id(request)));

  /** A payer's own client knows the secret of the one payment. */
  const own: (handle: Handler) => Handler = (handle) => async (store, params, request) => {
    if (!request.get("authorization")?.includes("pk_test_")) return handle(store, params, request);
    const intent = await store.find(id(request));
    if (!intent || intent.client_secret !== params.client_secret)
      throw invalid(
        "The client_secret provided does not match any associated PaymentIntent.",
        "client_secret",
      );
    return handle(store, params, request);
  };
  route("post", "/v1/payment_intents", payments.createIntent);
  route("get", "/v1/payment_intents/:id", own(read("payment_intent")), true);
  route(
    "post",
    "/v1/payment_intents/:id/confirm",
    own((store, params, request) => payments.confirmIntent(store, id(request), params, api)),
    true,
  );
  route("post", "/v1/payment_intents/:id/cancel", (store, _params, request) =>
    payments.cancelIntent(store, id(request)),
  );
  route("get", "/v1/charges/:id", read("charge"));
  route("post", "/v1/refunds", payments.createRefund);
  route("get", "/v1/refunds", (store, { charge, payment_intent, ...page }) =>
    store.page("/v1/refunds", "refund", page, {
      where: { ...(charge && { charge }), ...(payment_intent && { payment_intent }) },
    }),
  );
  route("get", "/v1/refunds/:id", read("refund"));
  route("get", "/v1/disputes", (store, { charge, ...page }) =>
    store.page("/v1/disputes", "dispute", page, { where: { ...(charge && { charge }) } }),
  );
  route("post", "/v1/disputes/:id", (store, params, request) =>
    payments.updateDispute(store, id(request), params),
  );

  route("post", "/v1/disputes/:id/close", (store, _params, request) =>
    payments.updateDispute(store, id(request), { evidence: { uncategorized_text: "losing_evidence" } }),
  );

  route("post", "/v1/accounts", accounts.createAccount);
  route("get", "/v1/accounts/:id", (store, _params, request) => accounts.getAccount(store, id(request)));
  route("delete", "/v1/accounts/:id", (store, _params, request) =>
    accounts.deleteAccount(store, id(request)),
  );
  route("get", "/v1/accounts/:id/persons", (store, page, request) =>
    store.page(`/v1/accounts/${id(request)}/persons`, "person", page, { where: { account: id(request) } }),
  );
  route("post", "/v1/accounts/:id/persons", (store, params, request) =>
    accounts.savePerson(store, id(request), undefined, params),
  );
  route("post", "/v1/accounts/:id/persons/:person", (store, params, request) =>
    accounts.savePerson(store, id(request), id(request, "person"), params),
  );
  route("delete", "/v1/accounts/:id/persons/:person", (store, _params, request) =>
    accounts.deletePerson(store, id(request), id(request, "person")),
  );

  route("get", "/v1/events", (store, { created, types, ...page }) =>
    store.page("/v1/events", "event", page, {
      since: created?.gte,
      types: Object.values<string>(types ?? {}),
    }),
  );

  app.get("/sandbox/authenticate/:secret", (request, response) => {
    response.type("html").send(authenticationPage(String(request.params["secret"])));
  });
  app.post("/sandbox/authenticate/:secret", async (request, response) => {
    const agreed = (request.body as { decision?: string }).decision === "complete";
    try {
      const back = await withStore(pool, (store) =>
        payments.authenticated(store, String(request.params["secret"]), agreed),
      );
      deliveries.kick().catch(() => {});
      if (back) response.redirect(303, back);
      else response.type("html").send(donePage);
    } catch {
      response.status(404).type("html").send(donePage);
    }
  });
  app.use((request, response) => {
    response.status(404).json({
      error: {
        type: "invalid_request_error",
        message: `Unrecognized request URL (${request.method}: ${request.path}). The sandbox knows what the service uses.`,
      },
    });
  });

  const server = createServer(app);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  }).catch(async (error) => {
    await pool.end();
    throw error;
  });
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  deliveries.kick().catch(() => {});
  return {
    api,
    secretKey,
    kick: deliveries.kick,
    deliverTo: deliveries.deliverTo,
    async stop() {
      await deliveries.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await pool.end();
    },
  };
}
