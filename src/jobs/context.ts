import type { Task } from "graphile-worker";
import type { Pool } from "pg";
import type { FileStore } from "../providers/files/index.ts";
import type { MailProvider } from "../providers/mail/index.ts";
import type { Integrations } from "../integrations/integrations.ts";
import type { PaymentProcessor } from "../providers/payments/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";

/** What tasks need of the process they run in; it stands beside the job runner's own helpers. */
export interface TaskContext {
  mail: MailProvider;
  /** Where the contents of files lie. */
  fileStore: FileStore;
  payments: PaymentProcessor;
  sms: SmsProvider;
  integrations: Pick<Integrations, "account" | "keep" | "noteFailure" | "noteSynced" | "retry" | "sendAs">;
  /** What secrets are sealed with. */
  seal: Seal;
  /** For files on their way to the store. */
  incomingFolder: string;
  /** Connections of plat_authenticator, to read as a member of an organization: each has its share of them. */
  viewersOf: (organizationId: string) => Pick<Pool, "connect">;
  /** Where people use the service, for links; without a trailing slash. */
  webUrl: string;
  /** The service's own address, for links that it opens itself; without a trailing slash. */
  serviceUrl: string;
  /** Who gets the messages to the service. */
  operatorEmail: string;
}

declare module "graphile-worker" {
  interface JobHelpers extends TaskContext {}
}

/**
 * A preset for the job runner that hands the context to every task it loads from its folder, as members of the
 * task's second argument. So a task is one file with one function, and nothing is global.
 */
export function taskContext(context: TaskContext): GraphileConfig.Preset {
  return {
    plugins: [
      {
        name: "TaskContextPlugin",
        version: "1.0.0",
        after: ["LoadTaskFromJsPlugin"],
        worker: {
          hooks: {
            loadTaskFromFiles(_ctx, event) {
              const task = event.handler as Task | undefined;
              if (task) event.handler = (payload, helpers) => task(payload, { ...helpers, ...context });
            },
          },
        },
      },
    ],
  };
}
