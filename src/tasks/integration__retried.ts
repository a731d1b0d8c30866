import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";

/**
 * Refreshes the integration {id} of an organization and resolves the escalation ticket {ticketId}. Another run calls
 * the application again; the ticket is resolved once.
 */
const task: Task = async (payload, { integrations, query, logger }) => {
  const error = await integrations.retry("ORGANIZATION", idOf(payload)).catch((unexpected: Error) => {
    logger.error(`Refreshing an integration failed: ${unexpected.message}`, {
      event: "integration.refresh_failed",
    });
    return "An internal error occurred; try again.";
  });
  await query("select app_private.end_resolution($1, $2)", [idOf(payload, "ticketId"), error ?? null]);
};

export default task;
