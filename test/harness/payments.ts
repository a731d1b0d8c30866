/** A portfolio whose organization accepts payments, through the real client and a sandbox processor over HTTP. */
import { randomBytes } from "node:crypto";
import pino from "pino";
import type { PaymentProcessor } from "../../src/providers/payments/index.ts";
import { startSandbox, type Sandbox } from "../../src/providers/payments/sandbox/index.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import type { Person } from "./api.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { signUpBuyer } from "./deals.ts";
import type { HostOptions } from "./host.ts";
import { startPortfolio, type Portfolio } from "./portfolio.ts";
import { until } from "./until.ts";

export interface Payments extends Portfolio {
  sandbox: Sandbox;
  processor: PaymentProcessor;
  webhookSecret: string;
  /**
   * Makes the next call of a method fail, before or after the processor executes it, as if the process died or the
   * processor did not answer at that moment.
   */
  failNext(method: keyof PaymentProcessor, when: "before" | "after", how?: "dies" | "is mute"): void;
  /** How often each method of the processor was called. */
  calls: Map<string, number>;
  /** Receives and processes the events of the processor. */
  settle(): Promise<void>;
  /** Runs the job that reconciles payments of unknown result; throws if it fails. */
  reconcile(): Promise<void>;
  /** Reads and removes the mails that jobs have sent since the last time. */
  mails: Outbox["take"];
  /** The buyer of `purchase`, in the project of Harbour Homes. */
  bea: Person;
  purchase: string;
  /** Another buyer, with a purchase in the same project. */
  ben: Person;
}

export const representative = {
  kind: "AUTHORIZED_REPRESENTATIVE",
  firstName: "Rita",
  lastName: "Rep",
  email: "rita@harbour.example",
  dob: "1980-05-17",
  title: "Director",
  address: { thoroughfare: "1 Quay Street", locality: "Toronto", postalCode: "M5J 2N8", country: "CA" },
};

/** @param from the database to use. Default: a new one. */
export async function startPayments(from?: TestDatabase, options: HostOptions = {}): Promise<Payments> {
  const database = from ?? (await createTestDatabase());
  const log = pino({ level: "silent" });
  const sandbox = await startSandbox({ connectionString: database.workerUrl, log });
  const webhookSecret = `whsec_${randomBytes(16).toString("hex")}`;
  type Host = typeof import("./host.ts");
  const failures = new Map<string, { when: "before" | "after"; how: "dies" | "is mute" }>();
  const calls = new Map<string, number>();
  const processorOf = ({ createStripeProcessor, ProcessorFailure }: Host): PaymentProcessor => {
    // Configured like the real processor, except for the URL.
    const real = createStripeProcessor({
      secretKey: sandbox.secretKey,
      api: sandbox.api,
      webhookSecret,
      returnUrl: "https://plat.example/paid",
      serviceUrl: "https://plat.example",
    });
    const wrap =
      (name: string, method: (...values: unknown[]) => unknown) =>
      (...values: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1);
        const failure = failures.get(name);
        if (!failure) return method(...values);
        failures.delete(name);
        return (async () => {
          if (failure.when === "after") await method(...values);
          throw failure.how === "dies"
            ? new Error("The process died.")
            : new ProcessorFailure("No answer.", true, undefined);
        })();
      };
    return Object.fromEntries(
      Object.entries(real).map(([name, member]) => [
        name,
        typeof member === "function" ? wrap(name, member as () => unknown) : member,
      ]),
    ) as unknown as PaymentProcessor;
  };
  const here = await import("./host.ts");
  // The API and everything that it calls run in another realm; jobs run in this one.
  const forApi = processorOf(await (globalThis.platHost?.() ?? here));
  const processor = processorOf(here);
  const world = await startPortfolio(database, { ...options, payments: forApi });
  sandbox.deliverTo({ url: new URL("/webhooks/payments", world.url).href, secret: webhookSecret });
  const outbox = await createOutbox();
  const work = async () => {
    const lines = await runJobs(database.ownerUrl, outbox.provider, undefined, processor);
    if (process.env.TEST_LOG) console.log(lines.join("\n"));
    return lines;
  };

  const [{ person: bea, purchase }, { person: ben }] = await Promise.all([
    signUpBuyer(world),
    signUpBuyer(world, "Ben Buyer"),
  ]);

  return {
    ...world,
    sandbox,
    processor,
    webhookSecret,
    calls,
    bea,
    ben,
    purchase,
    mails: () => outbox.take(),
    failNext: (method, when, how = "dies") => void failures.set(method, { when, how }),
    async settle() {
      // Time that deliveries would wait for has passed.
      await world.owner.query(
        `update app_private.sandbox_objects set data = data || '{"due": 0}' where kind = 'event' and data ? 'due'`,
      );
      await until(
        async () => {
          await sandbox.kick();
          return world.owner.query(
            "select id, data from app_private.sandbox_objects where kind = 'event' and data ? 'due'",
          );
        },
        ({ rowCount }) => rowCount === 0,
      );
      await work();
    },
    async reconcile() {
      await world.owner.query("select app_private.add_job('payments__reconcile')");
      const lines = [...(await work()), ...(await work())];
      // A failure here is often corrected by later events of the processor.
      const failed = lines.filter(
        (line) => /^(warning|error)/.test(line) && /processor|reconcile/.test(line),
      );
      if (failed.length > 0) throw new Error(failed.join("\n"));
    },
    async stop() {
      await world.stop();
      await sandbox.stop();
      await outbox.remove();
      if (!from) await database.drop();
    },
  };
}
