import type { Task } from "graphile-worker";
import type { Pool } from "pg";
import type { FileStore } from "../providers/files/index.ts";
import type { MailProvider } from "../providers/mail/index.ts";
import type { Integrations } from "../integrations/integrations.ts";
import type { PaymentProcessor } from "../providers/payments/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";

/** The services of the process that tasks use, in addition to the helpers of the job runner. */
export interface TaskContext {
  mail: MailProvider;
  /** Storage of file contents. */
  fileStore: FileStore;
  payments: PaymentProcessor;
  sms: SmsProvider;
  integrations: Pick<Integrations, "account" | "keep" | "noteFailure" | "noteSynced" | "retry" | "sendAs">;
  /** Keys that seal secrets. */
  seal: Seal;
  /** Folder for files on their way to the store. */
  incomingFolder: string;
  /**
   * Connections of plat_authenticator, for reading as a member of an organization; shared fairly among organizations.
   */
  viewersOf: (organizationId: string) => Pick<Pool, "connect">;
  /** URL of the application, for links; without a trailing slash. */
  webUrl: string;
  /** URL of the service itself, for links that it serves; without a trailing slash. */
  serviceUrl: string;
  /** Recipient of messages to the operator. */
  operatorEmail: string;
}

declare module "graphile-worker" {
  interface JobHelpers extends TaskContext {}
}

/**
 * A preset of the job runner that passes the context to every task in its folder, merged into the second argument. A
 * task is therefore one file with one function, and there are no globals.
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
