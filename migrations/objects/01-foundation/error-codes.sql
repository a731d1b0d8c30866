-- The codes that `extensions.code` of an error may have; src/base/errors.ts has the same, with the HTTP status of each.

insert into app_private.error_codes (code, description) values
  ('UNAUTHENTICATED', 'The token is missing, unknown, expired or revoked, or the name and password do not match.'),
  ('FORBIDDEN', 'The viewer can see the record, but lacks the permission for this operation.'),
  ('NOT_FOUND', 'The record that a mutation refers to does not exist, or the viewer cannot see it.'),
  ('BAD_USER_INPUT', 'An input value is missing, malformed or out of range, or contradicts another one.'),
  ('CONFLICT', 'The change conflicts with other records, such as a duplicate or a record that is still in use.'),
  ('INVALID_TRANSITION', 'The state machine does not allow this transition from the current status.'),
  ('INVENTORY_UNAVAILABLE', 'Another hold, reservation or purchase claims the unit or lot.'),
  ('VERSION_MISMATCH', 'The record has changed since the client read it.'),
  ('IDEMPOTENCY_MISMATCH', 'The idempotency key was used for a request with another body.'),
  ('LIMIT_EXCEEDED', 'The query exceeds a limit of depth, cost or list length.'),
  ('PAYLOAD_TOO_LARGE', 'The request body exceeds its size limit.'),
  ('UNSUPPORTED_FILE', 'The content of the file is not of an accepted type.'),
  ('RATE_LIMITED', 'Too many requests or attempts; retry after retryAfterSeconds.'),
  ('PROJECT_ARCHIVED', 'The project is archived, and therefore read-only.'),
  ('ORGANIZATION_MOVED', 'The organization is on another server; send the request to `url`.'),
  ('UNAVAILABLE', 'The database is unreachable or overloaded; retry after retryAfterSeconds.'),
  ('PROVIDER_ERROR', 'An external provider failed, such as the payment processor or the mail server.'),
  ('INTERNAL', 'An internal error; it is logged with the request id.')
on conflict (code) do update set description = excluded.description;
