-- Enumerations of integrations.

select app_private.describe_enum('integration_status', 'Whether an integration is connected and works.', array[
  ['PENDING', 'Not connected yet; `statusReason` says what is missing.'],
  ['ENABLED', 'Connected and in use.'],
  ['DISABLED', 'Disabled by a user; nothing is sent.'],
  ['ERROR', 'Failed repeatedly, or its credentials were refused; correct the cause, then refresh it.']
]);

select app_private.describe_enum('integration_category', 'Business area of an application.', array[
  ['EMAIL', 'Sending and receiving mail.'],
  ['CALENDAR', 'Appointments and availability.'],
  ['E_SIGNATURE', 'Electronic signatures.'],
  ['PAYMENTS', 'Card payments and bank transfers.'],
  ['ADVERTISING', 'Ads and campaigns.'],
  ['TELEPHONY', 'Phone calls.'],
  ['MESSAGING', 'Team chat and text messages.'],
  ['ACCOUNTING', 'Bookkeeping.'],
  ['ERP', 'Enterprise resource planning.'],
  ['CRM', 'Customer relationship management.'],
  ['MLS', 'Multiple listing services.'],
  ['ANALYTICS', 'Usage and sales statistics.'],
  ['STORAGE', 'File storage.'],
  ['CONSTRUCTION', 'Construction management.'],
  ['OTHER', 'Any other area.']
]);

select app_private.describe_enum('integration_scope', 'Who can connect an application.', array[
  ['ORGANIZATION', 'Owners and admins, for their organization.'],
  ['USER', 'Each user, for their own account.']
]);

select app_private.describe_enum('integration_auth_type', 'How the service authenticates with an application.', array[
  ['OAUTH2', 'OAuth 2: authorization code grant with PKCE.'],
  ['API_KEY', 'An API key issued by the application.'],
  ['BASIC', 'HTTP basic authentication with a user name and a password.'],
  ['WEBHOOK', 'A signature on each request to the application.'],
  ['NONE', 'No credentials, or a secret URL.']
]);
