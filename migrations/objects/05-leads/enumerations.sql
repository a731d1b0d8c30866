-- Enumerations of leads, their sources and tasks.

select app_private.describe_enum('lead_status', 'Sales stage of a lead.', array[
  ['NEW', 'Not contacted yet.'],
  ['CONTACTED', 'The first call, mail or appointment has taken place.'],
  ['COLD', 'Rated by the team: unlikely to buy soon.'],
  ['WARM', 'Rated by the team: interested.'],
  ['HOT', 'Rated by the team: ready to buy.'],
  ['NEGOTIATING', 'Has an active negotiation.'],
  ['RESERVED', 'Has an active reservation.'],
  ['CONVERTED', 'Converted into a buyer, which carries the purchase.'],
  ['LOST', 'Will not buy; `falloutReasonId` says why.'],
  ['UNQUALIFIED', 'Unable to buy, such as for lack of financing.']
]);

select app_private.describe_enum('lead_origin', 'Technical channel through which a lead was created.', array[
  ['WEB_FORM', 'A form on the organization''s website.'],
  ['CONTACT_PROJECT', 'The project''s public contact form.'],
  ['API', 'Created through the API by a program.'],
  ['IMPORT', 'A file import.'],
  ['MANUAL', 'Entered by a user.'],
  ['PHONE', 'A phone call.'],
  ['WALK_IN', 'A visit to the sales office.'],
  ['OPEN_HOUSE', 'A registration for an open house.'],
  ['REFERRAL', 'Recommended by another person.'],
  ['AGENT_PORTAL', 'Submitted by an agent who represents buyers.'],
  ['INTEGRATION', 'A connected application.'],
  ['MARKETPLACE', 'A listing site of a third party.'],
  ['RESERVATION', 'An online reservation by the person.']
]);

select app_private.describe_enum('lead_source_category', 'Marketing channel of a lead source.', array[
  ['WEBSITE', 'The organization''s own website.'],
  ['PORTAL', 'Third-party listing sites.'],
  ['SEARCH_ADS', 'Search engine advertising.'],
  ['SOCIAL', 'Social media.'],
  ['EMAIL', 'Newsletters and mailings.'],
  ['REFERRAL', 'Recommendations by customers or partners.'],
  ['AGENT', 'Agents who represent buyers.'],
  ['SIGNAGE', 'Billboards and signs on the site.'],
  ['EVENT', 'Trade fairs and open houses.'],
  ['PRINT', 'Newspapers, magazines and flyers.'],
  ['PHONE', 'Calls to the sales line.'],
  ['WALK_IN', 'Visits without an appointment.'],
  ['OTHER', 'Any other channel.']
]);

select app_private.describe_enum('fallout_subject', 'Kind of record that a fallout reason applies to.', array[
  ['LEAD', 'A lead that becomes `LOST`.'],
  ['RESERVATION', 'A reservation that ends without a purchase.'],
  ['NEGOTIATION', 'A negotiation that ends without a deal.'],
  ['BUYER', 'A purchase that is cancelled.']
]);

select app_private.describe_enum('fallout_category',
  'Why a lead, negotiation, reservation or purchase fell through, for reports.', array[
  ['PRICE', 'The home was too expensive for the buyer.'],
  ['FINANCING', 'The loan was refused or too expensive.'],
  ['LOCATION', 'The site or its surroundings did not suit the buyer.'],
  ['LAYOUT', 'The rooms did not suit the buyer.'],
  ['TIMING', 'The move-in date did not suit the buyer.'],
  ['COMPETITOR', 'The person bought from a competitor.'],
  ['UNRESPONSIVE', 'The person stopped answering.'],
  ['RESCISSION', 'The buyer rescinded within the rescission period.'],
  ['DEFAULT', 'The buyer failed to fulfil the contract.'],
  ['DUPLICATE', 'The same person or deal is recorded elsewhere.'],
  ['OTHER', 'A reason that is not listed here.']
]);

select app_private.describe_enum('note_visibility', 'Who can read a note.', array[
  ['TEAM', 'Everyone who can see the lead.'],
  ['ASSIGNEE', 'The author and the member to whom the lead is assigned.'],
  ['ORGANIZATION', 'Members of the organization only, not of affiliated ones.']
]);

select app_private.describe_enum('duplicate_policy', 'What happens to a new lead that matches an existing one.', array[
  ['MERGE', 'Fills the empty fields of the existing lead and returns it.'],
  ['RETURN_EXISTING', 'Returns the existing lead unchanged.'],
  ['ERROR', 'Refuses the new lead with `CONFLICT` and `existingId`.']
]);

select app_private.describe_enum('task_type', 'Activity that a task asks for.', array[
  ['TODO', 'Any other activity.'],
  ['CALL', 'Call somebody by phone.'],
  ['EMAIL', 'Write a mail to somebody.'],
  ['SMS', 'Send a text message.'],
  ['MEETING', 'Meet somebody in person or by video.'],
  ['DOCUMENT', 'Prepare or collect documents.'],
  ['PAYMENT', 'Collect or make a payment.'],
  ['FOLLOW_UP', 'Contact a lead or buyer again.']
]);

select app_private.describe_enum('task_status', 'Progress of a task.', array[
  ['OPEN', 'Work has not started.'],
  ['IN_PROGRESS', 'Work has started.'],
  ['WAITING', 'Blocked until another person acts.'],
  ['COMPLETED', 'Done; can be reopened.'],
  ['CANCELLED', 'No longer needed.']
]);

select app_private.describe_enum('task_priority', 'Urgency of a task.', array[
  ['LOW', 'When no other task is open.'],
  ['MEDIUM', 'The default.'],
  ['HIGH', 'Before tasks of medium priority.'],
  ['URGENT', 'Before all other tasks.']
]);

select app_private.describe_enum('lead_row_outcome', 'Result for one row of a bulk operation.', array[
  ['CREATED', 'No lead matched; a new one was created.'],
  ['UPDATED', 'An existing lead was changed.'],
  ['UNCHANGED',
    'The existing lead was left unchanged: it already matched the row, or the policy for duplicates says so.'],
  ['REFUSED', 'Refused; nothing was changed, see `errors`.']
]);
