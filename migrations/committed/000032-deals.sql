--! Previous: sha1:beac48d84de4baeab06e2556699782c1f6ed2320
--! Hash: sha1:7f38784292388a358e3b571720a50f7cdc83a83c
--! Message: deals

-- States of reservations, negotiations and purchases.

select app_private.create_enum('buyer_status', 'How far a purchase is.', array[
  ['DRAFT', 'Being prepared.'], ['OUT_FOR_SIGNATURE', 'The contract was sent.'],
  ['IN_REVIEW', 'Signed; the buyer may still withdraw.'],
  ['CONDITIONAL', 'Signed; conditions such as financing are open.'], ['FIRM', 'Nothing is open.'],
  ['CLEAR_TO_CLOSE', 'Everything for closing is there.'], ['CLOSED', 'The buyer owns the home.'],
  ['CANCELLED', 'It fell through.']]);
select app_private.create_enum('reservation_status', 'What became of a reservation.', array[
  ['PENDING', 'Entered, not confirmed.'], ['CONFIRMED', 'Confirmed by the sales team.'],
  ['CONVERTED', 'Became a purchase.'], ['EXPIRED', 'Its time ran out.'], ['CANCELLED', 'Called off.'],
  ['REFUNDED', 'Undone: the home is for sale again.']]);
select app_private.create_enum('negotiation_status', 'Where a negotiation stands.', array[
  ['OPEN', 'No offer has been made, or the last one was withdrawn.'], ['ACTIVE', 'An offer is pending.'],
  ['ACCEPTED', 'An offer was accepted.'], ['REJECTED', 'The last offer was rejected.'],
  ['EXPIRED', 'The last offer ran out.'], ['CANCELLED', 'Called off.']]);
select app_private.create_enum('party_side', 'A side of a deal.', array[
  ['BUYER', 'Whoever buys.'], ['SELLER', 'Whoever sells.']]);
select app_private.create_enum('occupancy_type', 'What a home is bought for.', array[
  ['PRIMARY_RESIDENCE', 'To live in.'], ['SECONDARY_RESIDENCE', 'To live in at times.'],
  ['INVESTMENT', 'To let or sell.'], ['FAMILY_MEMBER', 'For a member of the family.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('financing_type', 'How a home is paid.', array[
  ['CASH', 'Without a loan.'], ['CONVENTIONAL', 'A conventional loan.'],
  ['FHA', 'A loan insured by the Federal Housing Administration.'],
  ['VA', 'A loan guaranteed by the Department of Veterans Affairs.'],
  ['USDA', 'A loan backed by the Department of Agriculture.'], ['JUMBO', 'A loan above the conforming limit.'],
  ['CONSTRUCTION', 'A construction loan.'], ['PRIVATE', 'A private loan.'], ['OTHER', 'Something else.'],
  ['UNKNOWN', 'Not known yet.']]);

create table app_private.deal_tables (
  table_name text primary key
);
alter table app_private.deal_tables enable row level security;
