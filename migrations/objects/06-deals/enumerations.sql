-- Enumerations of reservations, negotiations, purchases and related records.

select app_private.describe_enum('buyer_status', 'Progress of a purchase, from draft to closing.', array[
  ['DRAFT', 'In preparation; the contract was not sent.'],
  ['OUT_FOR_SIGNATURE', 'The contract was sent to the signers.'],
  ['IN_REVIEW', 'Signed; the buyer may still rescind.'],
  ['CONDITIONAL', 'Signed; conditions such as financing are outstanding.'],
  ['FIRM', 'Binding: no condition is outstanding.'],
  ['CLEAR_TO_CLOSE', 'All requirements for closing are met.'],
  ['CLOSED', 'Ownership was transferred to the buyer.'],
  ['CANCELLED', 'The purchase was cancelled; see `cancellationReason`.']
]);

select app_private.describe_enum('reservation_status',
  'Progress of a reservation, from entry to purchase or cancellation.', array[
  ['PENDING', 'Entered; not yet confirmed by the sales team.'],
  ['CONFIRMED', 'Confirmed by the sales team.'],
  ['CONVERTED', 'Became a purchase.'],
  ['EXPIRED', '`expiresAt` has passed.'],
  ['CANCELLED', 'Cancelled by either side, with a reason.'],
  ['REFUNDED', 'Reversed: the buyer is removed, and the unit or lot is available at its original list price.']
]);

select app_private.describe_enum('negotiation_status', 'Progress of a negotiation.', array[
  ['OPEN', 'No offer has been made yet, or the last one was withdrawn.'],
  ['ACTIVE', 'An offer is pending.'],
  ['ACCEPTED', 'An offer was accepted.'],
  ['REJECTED', 'The last offer was rejected.'],
  ['EXPIRED', 'The last offer expired.'],
  ['CANCELLED', 'Ended without a deal.']
]);

select app_private.describe_enum('party_side', 'Side of a deal.', array[
  ['BUYER', 'The purchasing party.'],
  ['SELLER', 'The developer, or an agency on behalf of it.']
]);

select app_private.describe_enum('occupancy_type', 'Intended use of a home.', array[
  ['PRIMARY_RESIDENCE', 'The main home of the buyer.'],
  ['SECONDARY_RESIDENCE', 'A second or holiday home.'],
  ['INVESTMENT', 'To rent out or resell.'],
  ['FAMILY_MEMBER', 'A relative of the buyer will live there.'],
  ['OTHER', 'Any other use.']
]);

select app_private.describe_enum('financing_type', 'How a purchase is financed.', array[
  ['CASH', 'Without a loan.'],
  ['CONVENTIONAL', 'A loan without government insurance.'],
  ['FHA', 'A loan insured by the US Federal Housing Administration.'],
  ['VA', 'A loan guaranteed by the US Department of Veterans Affairs.'],
  ['USDA', 'A loan backed by the US Department of Agriculture.'],
  ['JUMBO', 'A loan above the conforming loan limit.'],
  ['CONSTRUCTION', 'A construction loan.'],
  ['PRIVATE', 'A loan from a private lender.'],
  ['OTHER', 'A kind of financing that is not listed here.'],
  ['UNKNOWN', 'Not known yet.']
]);

select app_private.describe_enum('offer_kind',
  'Whether an offer starts a round of a negotiation or answers another offer.', array[
  ['OFFER', 'Starts a round.'],
  ['COUNTER_OFFER', 'Answers the previous offer.']
]);

select app_private.describe_enum('offer_status', 'Outcome of an offer.', array[
  ['PENDING', 'Awaits the answer of the other side.'],
  ['COUNTERED', 'Answered with a counteroffer.'],
  ['ACCEPTED', 'The other side agreed to its terms.'],
  ['REJECTED', 'Rejected, or another offer on the unit was accepted.'],
  ['EXPIRED', 'Not answered before the deadline.'],
  ['WITHDRAWN', 'Withdrawn by the side that made it.']
]);

select app_private.describe_enum('offer_response_action', 'Answer to an offer.', array[
  ['ACCEPT', 'Accepts its terms; the unit is claimed for the buyer.'],
  ['REJECT', 'Rejects its terms.']
]);

select app_private.describe_enum('contact_role', 'Relation of a contact to a lead or buyer.', array[
  ['CO_BUYER', 'Purchases together with the buyer.'],
  ['SPOUSE', 'Married or registered partner.'],
  ['GUARANTOR', 'Guarantees the buyer''s loan.'],
  ['BUYER_ATTORNEY', 'Lawyer of the buyer.'],
  ['SELLER_ATTORNEY', 'Lawyer of the seller.'],
  ['LOAN_OFFICER', 'Arranges the loan.'],
  ['BUYER_AGENT', 'Agent who represents the buyer.'],
  ['TITLE_OFFICER', 'Handles the title and its transfer.'],
  ['POWER_OF_ATTORNEY', 'Signs on behalf of the buyer.'],
  ['FAMILY', 'A relative other than the spouse.'],
  ['ASSISTANT', 'Personal assistant of the buyer.'],
  ['FINANCIAL_PLANNER', 'Financial adviser.'],
  ['HOME_INSPECTOR', 'Inspects the home for the buyer.'],
  ['INSURANCE', 'Insures the home.'],
  ['OTHER', 'Any other relation.']
]);

select app_private.describe_enum('appointment_type', 'Purpose of an appointment.', array[
  ['IN_PERSON_TOUR', 'A visit on site.'],
  ['VIRTUAL_TOUR', 'A tour by video.'],
  ['PHONE', 'A scheduled phone call.'],
  ['SALES_MEETING', 'A meeting about a purchase.'],
  ['DESIGN_STUDIO', 'Selection of options and upgrades.'],
  ['CONTRACT_SIGNING', 'The parties meet to sign the contract.'],
  ['PRE_DELIVERY_WALKTHROUGH', 'Inspection of the home before handover.'],
  ['CLOSING', 'Transfer of ownership to the buyer.'],
  ['OPEN_HOUSE', 'A booked slot at an open house.'],
  ['OTHER', 'Any other purpose.']
]);

select app_private.describe_enum('appointment_status', 'Progress of an appointment, from request to outcome.', array[
  ['REQUESTED', 'Requested; no time agreed yet.'],
  ['SCHEDULED', 'A time is agreed.'],
  ['CONFIRMED', 'Confirmed again, after it was scheduled.'],
  ['COMPLETED', 'Took place.'],
  ['NO_SHOW', 'The lead or buyer did not come.'],
  ['RESCHEDULED', 'Replaced by another appointment.'],
  ['CANCELLED', 'Cancelled by either side.']
]);

select app_private.describe_enum('phone_call_direction', 'Side that placed a call.', array[
  ['INBOUND', 'The lead or buyer.'],
  ['OUTBOUND', 'The team.']
]);

select app_private.describe_enum('phone_call_status', 'Progress of a call, or how it ended.', array[
  ['QUEUED', 'Waiting to be dialed.'],
  ['RINGING', 'Dialed; not answered yet.'],
  ['IN_PROGRESS', 'The conversation is taking place.'],
  ['COMPLETED', 'Ended after a conversation.'],
  ['BUSY', 'The line was busy.'],
  ['NO_ANSWER', 'An outbound call that was not answered.'],
  ['FAILED', 'No connection was made.'],
  ['CANCELLED', 'Hung up before it was answered.'],
  ['MISSED', 'An inbound call that nobody in the team answered.']
]);

select app_private.describe_enum('phone_call_outcome', 'Result of a call.', array[
  ['CONNECTED', 'A conversation took place.'],
  ['LEFT_VOICEMAIL', 'A message was left on the voicemail.'],
  ['LEFT_LIVE_MESSAGE', 'A message was left with another person.'],
  ['NO_ANSWER', 'Nobody answered.'],
  ['BUSY', 'The line was busy.'],
  ['WRONG_NUMBER', 'The number belongs to another person.'],
  ['BAD_NUMBER', 'The number is not in service.'],
  ['CALLBACK_REQUESTED', 'The person asked to be called back.'],
  ['INTERESTED', 'The person wants to hear more about the project.'],
  ['NOT_INTERESTED', 'The person wants no further contact about the project.'],
  ['APPOINTMENT_SET', 'An appointment was scheduled.'],
  ['DO_NOT_CALL', 'The person asked not to be contacted; the lead is marked accordingly.'],
  ['OTHER', 'Any other result.']
]);

select app_private.describe_enum('deposit_status', 'Progress of a deposit, from schedule to payment or return.', array[
  ['SCHEDULED', 'Not due yet.'],
  ['INVOICED', 'Payment was requested.'],
  ['PROCESSING', 'Payment is in progress.'],
  ['PARTIALLY_PAID', 'Received in part.'],
  ['PAID', 'Received in full.'],
  ['RELEASED', 'Paid out to the seller.'],
  ['REFUNDED', 'Returned to the buyer.'],
  ['FORFEITED', 'Kept by the seller after the deal fell through.'],
  ['WAIVED', 'The seller waived the payment.'],
  ['CANCELLED', 'The deal fell through before payment.']
]);

select app_private.describe_enum('deposit_holder', 'Party that holds the deposited money.', array[
  ['ESCROW', 'An independent escrow agent.'],
  ['LAWYER', 'A law firm, on behalf of the parties.'],
  ['TITLE_COMPANY', 'The company that insures the title to the home.'],
  ['BROKER', 'The brokerage that sells the unit.'],
  ['DEVELOPER', 'The seller.']
]);

select app_private.describe_enum('payment_method', 'How a deposit is paid.', array[
  ['CARD', 'A credit, debit or prepaid card.'],
  ['ACH', 'Direct debit or credit through the Automated Clearing House.'],
  ['WIRE', 'Same-day transfer between banks.'],
  ['CHEQUE', 'A personal, certified or bank cheque.'],
  ['CASH', 'Banknotes and coins.'],
  ['BANK_TRANSFER', 'Credit transfer between bank accounts.'],
  ['OTHER', 'A method that is not listed here.']
]);

select app_private.describe_enum('personalization_status',
  'Progress of a personalization, from draft to construction.', array[
  ['DRAFT', 'The buyer is selecting options.'],
  ['SUBMITTED', 'Waiting for approval by the sales team.'],
  ['CHANGES_REQUESTED', 'Returned to the buyer for changes.'],
  ['APPROVED', 'Accepted by the sales team; prices are fixed.'],
  ['SIGNED', 'The buyer signed the selection.'],
  ['LOCKED', 'Under construction; cannot be changed.'],
  ['SUPERSEDED', 'Replaced by a later version.'],
  ['CANCELLED', 'Cancelled before it was signed.']
]);

select app_private.describe_enum('discount_base', 'Amount to which a percentage discount applies.', array[
  ['SELECTIONS_TOTAL', 'Total price of the selected options, before discounts and credits.'],
  ['PURCHASE_PRICE', 'The price of the home.'],
  ['CATEGORY', 'The price of the options of one category.']
]);

select app_private.describe_enum('unit_hold_status', 'Whether a hold is in effect.', array[
  ['ACTIVE', 'The unit or lot is held.'],
  ['CONVERTED', 'Replaced by a reservation, a purchase or an accepted offer.'],
  ['EXPIRED', '`expiresAt` has passed.'],
  ['RELEASED', 'Released by a user before `expiresAt`.']
]);
