-- Enumerations of floor plans, units, lots and specifications.

select app_private.describe_enum('home_type', 'Building type of a home.', array[
  ['CONDO', 'An apartment in a condominium.'],
  ['TOWNHOME', 'One of a row of houses.'],
  ['DETACHED', 'A free-standing single-family house.'],
  ['SEMI_DETACHED', 'One of two houses that share a wall.'],
  ['DUPLEX', 'One of two homes in one building.'],
  ['LOFT', 'An apartment with an open-plan living space.'],
  ['PENTHOUSE', 'An apartment on the top floor.'],
  ['LIVE_WORK', 'A home with a workspace.'],
  ['LOT', 'Land without a building.'],
  ['COMMERCIAL', 'A shop, office or other business space.']
]);

select app_private.describe_enum('floor_plan_status', 'Whether a floor plan is offered.', array[
  ['DRAFT', 'In preparation; visible to the team only.'],
  ['ACTIVE', 'Offered for sale.'],
  ['SOLD_OUT', 'Every unit of the plan is sold.'],
  ['RETIRED', 'No longer offered.']
]);

select app_private.describe_enum('orientation', 'Compass direction that a home or lot faces.', array[
  ['N', 'North.'],
  ['NE', 'North-east.'],
  ['E', 'East.'],
  ['SE', 'South-east.'],
  ['S', 'South.'],
  ['SW', 'South-west.'],
  ['W', 'West.'],
  ['NW', 'North-west.']
]);

select app_private.describe_enum('lot_status', 'Sales status of a lot.', array[
  ['UNRELEASED', 'Not released for sale yet; visible to the team only.'],
  ['AVAILABLE', 'For sale.'],
  ['HELD', 'Claimed by a short hold.'],
  ['RESERVED', 'Claimed by an active reservation.'],
  ['PENDING', 'An offer was accepted, or a purchase awaits signature.'],
  ['SOLD', 'The purchase counts as a sale, as `soldTrigger` of the project defines.'],
  ['CLOSED', 'Ownership was transferred.'],
  ['OFF_MARKET', 'Temporarily not for sale.']
]);

select app_private.describe_enum('lot_feature', 'Notable characteristic of a lot.', array[
  ['CORNER', 'On a street corner.'],
  ['CUL_DE_SAC', 'At the end of a dead-end street.'],
  ['WATERFRONT', 'On a lake, river or sea.'],
  ['GOLF_COURSE', 'Next to a golf course.'],
  ['PARK_VIEW', 'Overlooks a park.'],
  ['WALKOUT', 'The basement has a door to the garden.'],
  ['WOODED', 'Has trees.'],
  ['END_UNIT', 'At the end of a row of lots.'],
  ['FLAT', 'On level ground.'],
  ['SLOPED', 'On inclined ground.']
]);

select app_private.describe_enum('unit_status', 'Sales status of a unit.', array[
  ['UNRELEASED', 'Not released for sale yet; visible to the team only.'],
  ['AVAILABLE', 'For sale.'],
  ['HELD', 'Claimed by a short hold.'],
  ['RESERVED', 'Claimed by an active reservation.'],
  ['PENDING', 'An offer was accepted, or a purchase awaits signature.'],
  ['SOLD', 'The purchase counts as a sale, as `soldTrigger` of the project defines; see `soldAt`.'],
  ['CLOSED', 'Ownership was transferred.'],
  ['OFF_MARKET', 'Temporarily not for sale.']
]);

select app_private.describe_enum('unit_construction_status', 'Construction phase of a unit, in order.', array[
  ['NOT_STARTED', 'No permit yet, no work done.'],
  ['PERMITTED', 'The building permit is granted.'],
  ['SITE_WORK', 'The site is being prepared.'],
  ['FOUNDATION', 'The foundation is being poured.'],
  ['FRAMING', 'The structure is being erected.'],
  ['ROUGH_IN', 'Pipes, ducts and wiring are being installed.'],
  ['INSULATION', 'Walls and roof are being insulated.'],
  ['DRYWALL', 'Interior walls are being closed.'],
  ['INTERIOR_FINISHES', 'Floors, paint, cabinets and fixtures are being installed.'],
  ['EXTERIOR_FINISHES', 'Facade, windows and roof are being finished.'],
  ['FINAL_INSPECTION', 'Being inspected by the authority before occupancy.'],
  ['COMPLETED', 'Construction is finished.'],
  ['DELIVERED', 'Handed over to the buyer.']
]);

select app_private.describe_enum('standard_status', 'Listing status, as defined by the RESO Data Dictionary.', array[
  ['ACTIVE', 'For sale.'],
  ['ACTIVE_UNDER_CONTRACT', 'For sale, with an accepted reservation.'],
  ['CANCELED', 'The listing was cancelled.'],
  ['CLOSED', 'Ownership was transferred.'],
  ['COMING_SOON', 'Announced; not for sale yet.'],
  ['DELETE', 'To be deleted from listing sites.'],
  ['EXPIRED', 'The listing period has ended.'],
  ['HOLD', 'On a temporary hold.'],
  ['INCOMPLETE', 'In preparation; not ready to be listed.'],
  ['PENDING', 'Under contract; no further offers are taken.'],
  ['WITHDRAWN', 'Not for sale at present.']
]);

select app_private.describe_enum('spec_selection_mode', 'How many options of an element a buyer can select.', array[
  ['SINGLE', 'Exactly one.'],
  ['MULTIPLE', 'Any number.']
]);

select app_private.describe_enum('spec_option_tier', 'Pricing of an option.', array[
  ['STANDARD', 'Included in the price of the home.'],
  ['UPGRADE', 'At an additional price.'],
  ['CUSTOM', 'Priced for one buyer.']
]);

select app_private.describe_enum('spec_option_kind', 'Part of the home that an option changes.', array[
  ['STRUCTURAL', 'Walls, floors and openings.'],
  ['DESIGN', 'Surfaces and fixtures.'],
  ['APPLIANCE', 'Kitchen and laundry devices.'],
  ['EXTERIOR', 'The outside of the building.'],
  ['PACKAGE', 'A bundle of options.'],
  ['PARKING', 'A garage or parking space.'],
  ['STORAGE', 'A locker or storage room.'],
  ['OTHER', 'Any other part.']
]);
