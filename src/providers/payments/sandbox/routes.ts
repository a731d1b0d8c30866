/** The URLs of the sandbox: those of the processor's API that the service uses, and the authentication page of the payer's bank. */
import express, { type Express } from "express";
import type { WorkPool } from "../../../database/workConnections.ts";
import * as accounts from "./accounts.ts";
import { authenticationPage, donePage } from "./cardPage.ts";
import { attach, createPaymentMethod, detach } from "./cards.ts";
import * as payments from "./sandboxPayments.ts";
import type { Handler, requests } from "./requests.ts";
import { invalid } from "./sandboxErrors.ts";
import { withStore } from "./sandboxStore.ts";

export interface RoutesOptions {
  pool: WorkPool;
  /** Creates a request handler from an operation on the store. */
  on: ReturnType<typeof requests>;
  /** Delivers what is due. */
  kick: () => Promise<void>;
  /** The URL of the sandbox, once it is known. */
  api: () => string;
}

/** @param clients whether the payer's client may call it as well */
type Route = (method: "get" | "post" | "delete", path: string, handle: Handler, clients?: boolean) => void;

const id = (request: express.Request, name = "id") => String(request.params[name]);

const read =
  (kind: string): Handler =>
  (store, _params, request) =>
    store.get(kind, id(request));

/** Builds the application that serves these URLs. */
export function sandboxRoutes(options: RoutesOptions): Express {
  const { on } = options;
  const app = express();
  app.disable("x-powered-by");
  app.use(express.urlencoded({ extended: true, limit: "256kb", parameterLimit: 500 }));
  app.set("query parser", "extended");
  const route: Route = (method, path, handle, clients = false) => app[method](path, on(handle, { clients }));
  customerRoutes(route);
  paymentRoutes(route, options);
  accountRoutes(route);
  route("get", "/v1/events", (store, { created, types, ...page }) =>
    store.page("/v1/events", "event", page, {
      since: created?.gte,
      types: Object.values<string>(types ?? {}),
    }),
  );

  authenticationRoutes(app, options);
  app.use((request, response) => {
    response.status(404).json({
      error: {
        type: "invalid_request_error",
        message: `Unrecognized request URL (${request.method}: ${request.path}). The sandbox knows what the service uses.`,
      },
    });
  });
  return app;
}

function customerRoutes(route: Route): void {
  route("post", "/v1/customers", (store, { email = null, name = null, metadata = {} }) =>
    store.put(store.make("customer", "cus", { email, name, metadata })),
  );
  route("post", "/v1/payment_methods", createPaymentMethod, true);
  route("get", "/v1/payment_methods/:id", read("payment_method"));
  route("post", "/v1/payment_methods/:id/attach", (store, { customer }, request) =>
    attach(store, id(request), String(customer)),
  );
  route("post", "/v1/payment_methods/:id/detach", (store, _params, request) => detach(store, id(request)));
}

function paymentRoutes(route: Route, { api }: Pick<RoutesOptions, "api">): void {
  /** A payer's client has the secret of its payment. */
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
    own((store, params, request) => payments.confirmIntent(store, id(request), params, api())),
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
}

function accountRoutes(route: Route): void {
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
}

function authenticationRoutes(app: Express, { pool, kick }: Pick<RoutesOptions, "pool" | "kick">): void {
  app.get("/sandbox/authenticate/:secret", (request, response) => {
    response.type("html").send(authenticationPage(String(request.params["secret"])));
  });
  app.post("/sandbox/authenticate/:secret", async (request, response) => {
    const agreed = (request.body as { decision?: string }).decision === "complete";
    try {
      const back = await withStore(pool, (store) =>
        payments.confirmAuthentication(store, String(request.params["secret"]), agreed),
      );
      kick().catch(() => {});
      if (back) response.redirect(303, back);
      else response.type("html").send(donePage);
    } catch {
      response.status(404).type("html").send(donePage);
    }
  });
}
