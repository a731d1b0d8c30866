/** All commands, in the order in which the help lists them. */
import type { Command } from "../command.ts";
import { changes } from "./changes.ts";
import { completion } from "./completion.ts";
import { doctor } from "./doctor.ts";
import { eventsTail } from "./eventsTail.ts";
import { exportCommand } from "./export.ts";
import { importCommand } from "./import.ts";
import { jobsDiscard, jobsList, jobsRetry } from "./jobs.ts";
import { login } from "./login.ts";
import { logout } from "./logout.ts";
import { logs } from "./logs.ts";
import { query } from "./query.ts";
import { schema } from "./schema.ts";
import { trigger } from "./trigger.ts";
import { webhookListen } from "./webhookListen.ts";
import { whoami } from "./whoami.ts";
import { why } from "./why.ts";

export const commands: readonly Command[] = [
  login,
  logout,
  whoami,
  query,
  importCommand,
  exportCommand,
  eventsTail,
  webhookListen,
  trigger,
  logs,
  why,
  jobsList,
  jobsRetry,
  jobsDiscard,
  schema,
  changes,
  doctor,
  completion,
];
