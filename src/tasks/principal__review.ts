import type { Task } from "graphile-worker";

/** Suspends the webhook {webhookId}, or its integration, if its principal has lost the required permissions. */
const task: Task = async (payload, helpers) => {
  const { webhookId } = payload as { webhookId: string };
  await helpers.query("select app_private.review_webhook($1)", [webhookId]);
};

export default task;
