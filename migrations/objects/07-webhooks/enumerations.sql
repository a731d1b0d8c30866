-- Enumerations of webhooks and their deliveries.

select app_private.describe_enum('webhook_status', 'Whether events are sent to a webhook.', array[
  ['ENABLED', 'Events are sent.'],
  ['DISABLED', 'Events are neither sent nor queued.'],
  ['PAUSED', 'Events are queued until the webhook is enabled again.'],
  ['FAILING', 'Events are sent, but the latest attempts failed.']
]);

select app_private.describe_enum('webhook_delivery_status', 'Outcome of a delivery.', array[
  ['PENDING', 'Not attempted yet.'],
  ['SUCCEEDED', 'The endpoint answered with a 2xx status.'],
  ['RETRYING', 'The last attempt failed; it will be retried.'],
  ['FAILED', 'All attempts failed; not retried.'],
  ['DISCARDED', 'Not retried, because the webhook was disabled or deleted.']
]);
