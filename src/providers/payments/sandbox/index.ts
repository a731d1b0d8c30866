/**
 * A payment processor for development and tests, in the process of the service: it speaks the HTTP API of the real one, on an
 * address of this machine, so that the same client does the same against both. No money moves, and no card number is taken.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { Pool } from "pg";
import type { Logger } from "../../../log.ts";
import * as accounts from "./accounts.ts";
import { attach, createPaymentMethod, detach } from "./cards.ts";
import { startDeliveries, type Endpoint } from "./deliveries.ts";
import { invalid, missing } from "./errors.ts";
import { authenticationPage, donePage } from "./page.ts";
import * as payments from "./payments.ts";
import { requests, type Handler } from "./requests.ts";
import { inTransaction } from "./store.ts";

export interface SandboxOptions {
  /** The owner's connection to the database that it keeps its state in. */
  connectionString: string;
  /** Where it delivers events; nowhere, as long as another process does, where left out. */
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

const list = (url: string, data: unknown[]) => ({
  object: "list",
  url,
  has_more: false,
  data: data.map(payments.shown),
});

export async function startSandbox({
  connectionString,
  endpoint,
  port = 0,
  log,
}: SandboxOptions): Promise<Sandbox> {
  const pool = new Pool({ connectionString, max: 8, application_name: "plat-payments-sandbox" });
  pool.on("error", (error) =>
    log.warn({ err: error }, "A database connection of the sandbox processor broke."),
  );
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

  route("post", "/v1/customers", (store, { email = null, name = null, metadata = {} }) =>
    store.put(store.make("customer", "cus", { email, name, metadata })),
  );
  route("post", "/v1/payment_methods", createPaymentMethod, true);
  route("get", "/v1/payment_methods/:id", async (store, _params, request) => {
    const method = await store.find(id(request));
    if (method?.object !== "payment_method") throw missing("PaymentMethod", id(request));
    return method;
  });
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
  route(
    "get",
    "/v1/payment_intents/:id",
    own((store, _params, request) => payments.retrieveIntent(store, id(request))),
    true,
  );
  route(
    "post",
    "/v1/payment_intents/:id/confirm",
    own((store, params, request) => payments.confirmIntent(store, id(request), params, api)),
    true,
  );
  route("post", "/v1/payment_intents/:id/cancel", (store, _params, request) =>
    payments.cancelIntent(store, id(request)),
  );
  route("get", "/v1/charges/:id", async (store, _params, request) => {
    const charge = await store.find(id(request));
    if (charge?.object !== "charge") throw missing("charge", id(request));
    return charge;
  });
  route("post", "/v1/refunds", payments.createRefund);
  route("get", "/v1/refunds", async (store, params) => {
    const where = params.charge ? { charge: params.charge } : { payment_intent: params.payment_intent };
    // As many as a charge can have: the smallest amounts of it.
    return list("/v1/refunds", await store.list("refund", where, 10_000));
  });
  route("get", "/v1/refunds/:id", async (store, _params, request) => {
    const refund = await store.find(id(request));
    if (refund?.object !== "refund") throw missing("refund", id(request));
    return refund;
  });
  route("get", "/v1/disputes", async (store, { charge }) =>
    list("/v1/disputes", await store.list("dispute", { charge })),
  );
  route("post", "/v1/disputes/:id", (store, params, request) =>
    payments.updateDispute(store, id(request), params),
  );

  route("post", "/v1/disputes/:id/close", (store, _params, request) =>
    payments.updateDispute(store, id(request), { evidence: { uncategorized_text: "losing_evidence" } }),
  );

  route("post", "/v1/accounts", accounts.createAccount);
  route("get", "/v1/accounts/:id", (store, _params, request) => accounts.retrieveAccount(store, id(request)));
  route("get", "/v1/accounts/:id/persons", async (store, _params, request) =>
    list(`/v1/accounts/${id(request)}/persons`, await accounts.listPersons(store, id(request))),
  );
  route("post", "/v1/accounts/:id/persons", (store, params, request) =>
    accounts.savePerson(store, id(request), undefined, params),
  );
  route("post", "/v1/accounts/:id/persons/:person", (store, params, request) =>
    accounts.savePerson(store, id(request), id(request, "person"), params),
  );
  route(
    "delete",
    "/v1/accounts/:id/persons/:person",
    async (store, _params, request) =>
      (await accounts.deletePerson(store, id(request), id(request, "person"))) as object,
  );

  route("get", "/v1/events", async (store, { created, types }) => {
    const since = Number(created?.gte ?? 0);
    const wanted = Object.values(types ?? {});
    const events = (await store.list("event", {}, 1000)).filter(
      (event) => event.created >= since && (wanted.length === 0 || wanted.includes(event.type)),
    );
    return list("/v1/events", events);
  });

  app.get("/sandbox/authenticate/:secret", (request, response) => {
    response.type("html").send(authenticationPage(String(request.params["secret"])));
  });
  app.post("/sandbox/authenticate/:secret", async (request, response) => {
    const agreed = (request.body as { decision?: string }).decision === "complete";
    try {
      const back = await inTransaction(pool, (store) =>
        payments.authenticated(store, String(request.params["secret"]), agreed),
      );
      void deliveries.kick();
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
  void deliveries.kick();
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
