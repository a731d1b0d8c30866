-- Enumerations of events, permissions and files.

select app_private.describe_enum('actor_type', 'Kind of actor that caused an event.', array[
  ['USER', 'A signed-in user.'],
  ['ACCESS_TOKEN', 'A program that uses a user''s access token.'],
  ['BUYER', 'A buyer acting on their own deal.'],
  ['WORKFLOW', 'A step of a workflow execution.'],
  ['INTEGRATION', 'A connected application, such as a CRM.'],
  ['SYSTEM', 'The service itself, or a visitor without a token.'],
  ['AI', 'The drafting service, or an agent that acts for a user through `/mcp`.']
]);

select app_private.describe_enum('event_channel',
  'Channel through which a change reached the service. Synchronization programs use it to recognize their own '
  'changes.', array[
  ['UI', 'A user interface.'],
  ['API', 'The GraphQL API.'],
  ['SYSTEM', 'The service itself.'],
  ['IMPORT', 'A file import.'],
  ['INTEGRATION', 'A connected application.'],
  ['WEBHOOK', 'An inbound webhook.']
]);

select app_private.describe_enum('organization_role', 'Role of a member in an organization.', array[
  ['OWNER', 'Can do everything, including roles, members and the avatar; each organization keeps at least one.'],
  ['ADMIN', 'Can do everything except change roles, remove members and set the avatar.'],
  ['MEMBER', 'Works with leads, buyers and reservations; can read most other records.']
]);

select app_private.describe_enum('project_organization_role',
  'Role of an affiliated organization in a project, which determines what its members can see and do.', array[
  ['OWNER', 'The developer, or another company that owns the project.'],
  ['SELLER', 'Sells units; sees only its own leads.'],
  ['BUILDER', 'Builds the homes; can change construction status and dates.'],
  ['AGENCY', 'Sells for the developer; sees only its own leads.'],
  ['BROKER', 'Brings buyers; sees only its own leads.'],
  ['MARKETER', 'Advertises the project.'],
  ['LENDER', 'Finances purchases.'],
  ['TITLE', 'Handles the closing of purchases.'],
  ['VIEWER', 'Read-only access.']
]);

select app_private.describe_enum('image_category', 'Subject of an image.', array[
  ['HERO', 'The main image of the public page.'],
  ['EXTERIOR', 'The building from outside.'],
  ['INTERIOR', 'The rooms of a home.'],
  ['AMENITY', 'Facilities shared by the residents.'],
  ['RENDERING', 'A computer-generated view of something not yet built.'],
  ['CONSTRUCTION', 'Construction progress.'],
  ['OTHER', 'Any other subject.']
]);

select app_private.describe_enum('document_category', 'Subject of a document.', array[
  ['BROCHURE', 'Marketing material.'],
  ['PRICE_LIST', 'Current prices.'],
  ['DISCLOSURE', 'Facts that the seller must disclose by law.'],
  ['CONTRACT', 'A signed or draft contract.'],
  ['ADDENDUM', 'An addition to a contract.'],
  ['FLOOR_PLAN', 'Plan of the rooms.'],
  ['SPECIFICATION', 'Materials and features that are included in the price.'],
  ['WARRANTY', 'Warranty terms.'],
  ['PROOF_OF_FUNDS', 'Proof that the buyer can pay.'],
  ['PREAPPROVAL', 'Mortgage pre-approval of a lender.'],
  ['IDENTITY', 'Proof of identity.'],
  ['BUILD_ORDER', 'The order to the builder.'],
  ['OTHER', 'Any other subject.']
]);
