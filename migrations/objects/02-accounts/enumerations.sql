-- Enumerations of users, organizations, tokens and access.

select app_private.describe_enum('user_status', 'Whether a user can sign in.', array[
  ['INVITED', 'Invited; has not created an account yet.'],
  ['ACTIVE', 'Can sign in.'],
  ['SUSPENDED', 'Temporarily blocked; cannot sign in.'],
  ['DEACTIVATED', 'Account closed; cannot sign in.']
]);

select app_private.describe_enum('organization_kind', 'Business of an organization.', array[
  ['DEVELOPER', 'Develops projects.'],
  ['BUILDER', 'Builds homes.'],
  ['BROKERAGE', 'Brokers sales for sellers or buyers.'],
  ['AGENCY', 'Sells for developers.'],
  ['MARKETING', 'Advertises projects.'],
  ['LENDER', 'Finances purchases.'],
  ['TITLE_COMPANY', 'Insures titles and handles closings.'],
  ['LAW_FIRM', 'Practises law.'],
  ['OTHER', 'Any other business.']
]);

select app_private.describe_enum('access_token_status', 'Whether an access token is accepted.', array[
  ['ACTIVE', 'Accepted.'],
  ['EXPIRED', '`expiresAt` has passed; requests with it are refused with HTTP 401.'],
  ['REVOKED', 'Revoked; requests with it are refused with HTTP 401. Cannot be undone.']
]);

select app_private.describe_enum('invite_status', 'Outcome of an invitation.', array[
  ['PENDING', 'Sent; not answered yet.'],
  ['ACCEPTED', 'The recipient has joined.'],
  ['DECLINED', 'The recipient declined.'],
  ['EXPIRED', 'Not answered before the deadline.'],
  ['REVOKED', 'Withdrawn before it was answered.']
]);

select app_private.describe_enum('sending_channel', 'Channel to which a sending limit applies.', array[
  ['MAIL', 'Email.'],
  ['SMS', 'Text message.']
]);

select app_private.describe_enum('token_audience', 'Interface that accepts an access token.', array[
  ['API', '`/graphql` and the event streams.'],
  ['MCP', '`/mcp`, the interface for agents.']
]);

select app_private.describe_enum('access_reason', 'Why a person can or cannot see a record.', array[
  ['PERMISSION', 'Visible: a role of the person has the permission for all records of this type.'],
  ['OWN_RECORD', 'Visible: the record is assigned to the person, whose role covers assigned records.'],
  ['PERSONAL', 'Visible: the record is about the person, such as their own purchase.'],
  ['PUBLIC', 'Visible to everyone, without a token.'],
  ['NOT_ASSIGNED', 'Not visible: the person''s roles cover only records that are assigned to them.'],
  ['PERMISSION_MISSING', 'Not visible: no role of the person has the permission.'],
  ['SECOND_FACTOR_MISSING',
    'Not visible: the organization requires a second factor, which the person has not set up.'],
  ['NO_PART', 'Not visible: the person has no role in the organization or in one affiliated with the project.']
]);
