-- Enumerations of projects, their events, promotions and permits.

select app_private.describe_enum('project_status', 'Sales stage of a project.', array[
  ['DRAFT', 'In preparation; not announced.'],
  ['COMING_SOON', 'Announced; sales have not started.'],
  ['PRESALE', 'Sales before the public release.'],
  ['SELLING', 'On sale to the public.'],
  ['PAUSED', 'Sales are suspended.'],
  ['SOLD_OUT', 'Every unit is sold.'],
  ['COMPLETED', 'All homes have been delivered.'],
  ['ARCHIVED', 'Read-only and not public.']
]);

select app_private.describe_enum('project_visibility', 'Who can find and see a project.', array[
  ['PRIVATE', 'Members of the portfolio only.'],
  ['UNLISTED', 'Everyone with the link; not in lists or search.'],
  ['PUBLIC', 'Everyone, also in lists and search.']
]);

select app_private.describe_enum('project_type', 'Kind of development.', array[
  ['CONDOMINIUM', 'Apartments.'],
  ['TOWNHOME', 'Rows of houses with shared walls.'],
  ['SINGLE_FAMILY', 'Detached homes.'],
  ['MIXED_USE', 'Homes and commercial space.'],
  ['MASTER_PLANNED', 'A neighborhood with homes of several types, built in phases.'],
  ['LAND', 'Lots without buildings.'],
  ['COMMERCIAL', 'Commercial space.']
]);

select app_private.describe_enum('sold_trigger', 'Point at which a unit counts as sold.', array[
  ['SIGNED', 'When the purchase contract is signed.'],
  ['FIRM', 'When the purchase becomes firm.']
]);

select app_private.describe_enum('lead_assignment_mode', 'How new leads are assigned to members.', array[
  ['MANUAL', 'A member assigns them.'],
  ['ROUND_ROBIN', 'To the members in rotation.'],
  ['PRIVATE', 'To the member who creates the lead; members see only their own leads.']
]);

select app_private.describe_enum('projects_sort', 'Named sort order of projects.', array[
  ['SERVICE_INDEX', 'Highest service index first.'],
  ['UPDATED_AT', 'Last updated first.'],
  ['TITLE', 'By title, from A to Z.'],
  ['PRICE_ASC', 'Lowest price first.'],
  ['PRICE_DESC', 'Highest price first.'],
  ['DISTANCE',
    'Nearest to the viewer first, whose place their IP address tells, by the city of the project; by service '
    'index where that tells nothing.'],
  ['NEWEST', 'Newest first.']
]);

select app_private.describe_enum('open_house_status', 'Whether an open house takes place.', array[
  ['SCHEDULED', '`startsAt` is in the future.'],
  ['ACTIVE', 'In progress.'],
  ['ENDED', '`endsAt` has passed.'],
  ['CANCELED', 'Will not take place.']
]);

select app_private.describe_enum('open_house_format', 'How visitors attend an open house.', array[
  ['IN_PERSON', 'On site only.'],
  ['VIRTUAL', 'By video only.'],
  ['HYBRID', 'On site or by video.'],
  ['BROKER_PREVIEW', 'By invitation, for agents.']
]);

select app_private.describe_enum('promotion_kind', 'Benefit that a promotion grants.', array[
  ['PRICE_REDUCTION', 'An amount off the price.'],
  ['PERCENT_DISCOUNT', 'A percentage off the price.'],
  ['CLOSING_COST_CREDIT', 'A credit towards closing costs.'],
  ['OPTION_CREDIT', 'A credit towards options.'],
  ['RATE_BUYDOWN', 'Percentage points off the mortgage rate.'],
  ['HOA_CREDIT', 'A credit towards association fees.'],
  ['DEPOSIT_REDUCTION', 'A smaller deposit.'],
  ['AGENT_BONUS', 'Extra commission for the agent who brings the buyer.'],
  ['GIFT', 'A gift, described in `description`.']
]);

select app_private.describe_enum('promotion_status', 'Whether a promotion is running.', array[
  ['DRAFT', 'In preparation; visible to the portfolio only.'],
  ['SCHEDULED', '`startsAt` is in the future.'],
  ['ACTIVE', 'In effect.'],
  ['PAUSED', 'Suspended; visible to the portfolio only.'],
  ['ENDED', '`endsAt` has passed.'],
  ['EXHAUSTED', 'Redeemed the maximum number of times.']
]);

select app_private.describe_enum('promotion_scope', 'What a promotion applies to.', array[
  ['PROJECT', 'All units and lots of the project.'],
  ['FLOOR_PLANS', 'Selected floor plans.'],
  ['UNITS', 'Selected units.'],
  ['LOTS', 'Selected lots.']
]);

select app_private.describe_enum('tracker_kind', 'Technique by which a tracker recognizes a visit or contact.', array[
  ['LINK', 'A URL that counts the visit and redirects to its target.'],
  ['QR_CODE', 'A printed code that visitors scan.'],
  ['PIXEL', 'An invisible image of one pixel in a mail or page.'],
  ['PHONE_NUMBER', 'A dedicated number that leads call.'],
  ['EMAIL_ADDRESS', 'A dedicated address that leads write to.']
]);

select app_private.describe_enum('percent_base', 'Amount to which a percentage applies.', array[
  ['PURCHASE_PRICE', 'The price of the home alone.'],
  ['GROSS_PURCHASE_PRICE', 'The price with the selected options, before discounts and credits.'],
  ['NET_PURCHASE_PRICE', 'The price with the selected options, after discounts and credits.']
]);

select app_private.describe_enum('deposit_due_rule',
  'Event or date from which the due date of a deposit follows.', array[
  ['ON_RESERVATION', 'Immediately, when the unit is reserved.'],
  ['ON_SIGNING', 'When the contract is signed.'],
  ['ON_FIRM', 'When the purchase becomes firm.'],
  ['DAYS_AFTER_SIGNING', 'A number of days after the contract is signed.'],
  ['CONSTRUCTION_PHASE', 'When construction of the unit reaches a given phase.'],
  ['FIXED_DATE', 'On the day in `dueDate`.'],
  ['ON_CLOSING', 'When ownership is transferred to the buyer.']
]);

select app_private.describe_enum('location_source', 'How the location of a visitor was determined.', array[
  ['IP', 'The IP address of the request.'],
  ['FALLBACK', 'The city with the most public projects, because the location of the IP address is unknown.']
]);

select app_private.describe_enum('lease_permit_status', 'Whether a lease permit is available.', array[
  ['AVAILABLE', 'Can be reserved or issued.'],
  ['RESERVED', 'Set aside for somebody.'],
  ['ISSUED', 'Granted to somebody.'],
  ['EXPIRED', 'Past its end date.'],
  ['REVOKED', 'Withdrawn after it was issued.']
]);
