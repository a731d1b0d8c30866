import type { Task } from "graphile-worker";

/** Suspends the webhook {webhookId}, or the integration that it is of, where whoever answers for it may not do so any more. */
const task: Task = async (payload, helpers) => {
  const { webhookId } = payload as { webhookId: string };
  await helpers.query("select app_private.review_webhook($1)", [webhookId]);
};

export default task;
