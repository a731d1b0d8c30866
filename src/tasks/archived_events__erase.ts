import type { Task } from "graphile-worker";
import { eraseArchivedEvents } from "../archives/eraseArchivedEvents.ts";
import { idOf } from "../jobs/payload.ts";

/** Erases from the objects of archived events what was erased from the events of {organization_id}. Idempotent. */
const task: Task = (payload, helpers) =>
  eraseArchivedEvents(helpers, { organizationId: idOf(payload, "organization_id") });

export default task;
