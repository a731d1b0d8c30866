-- The columns of each subject. The names of a lead or buyer of other records require the permission for leads or
-- buyers.
--
-- Charges as a subject of reports and exports.

select app_private.add_report_subject('LEADS', 'leads', '{lead.read}', 'leads', 'registered_at');
select app_private.add_report_columns('LEADS', '{id, name, first_name, last_name, legal_name, email, phone, company,
  preferred_language, status, status_changed_at,
    tags, origin, source, is_agent, is_represented, subscribed, do_not_contact, registered_at, first_response_at,
      last_interaction_at, budget_min, budget_max,
    preapproved, fallout_note, lost_at, converted_at, metadata, inserted_at, updated_at, project_id, assignee_id,
      source_id, agent_id}',
  '{id, name, email, phone, company, status, origin, is_agent, do_not_contact, tags, budget_min, budget_max, '
  'registered_at, last_interaction_at}');
select app_private.add_report_links('LEADS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['currency', 'project_id', 'projects', 'x.currency', 'text', 'Currency of its amounts.', ''],
  ['sourceName', 'source_id', 'lead_sources', 'x.name', 'text', 'Where the lead came from.', ''],
  ['sourceCategory', 'source_id', 'lead_sources', 'x.category', 'app_public.lead_source_category',
    'Kind of the place where the lead came from.', ''],
  ['falloutReason', 'fallout_reason_id', 'fallout_reasons', 'x.name', 'text', 'Why the lead was lost.', '']],
    '{project, currency, sourceName}');
select app_private.add_report_people('LEADS', '{assignee}', '{assignee}');
select app_private.add_report_column('LEADS', 'city', '(t.address).locality', 'text', 'City of the address.');
select app_private.add_report_column('LEADS', 'country', '(t.address).country', 'text', 'Country of the address.');
select app_private.add_report_column('LEADS', 'responseMinutes',
  '(extract(epoch from t.first_response_at - t.registered_at) / 60)::int', 'int',
  'Minutes from the registration to the first response.');
select app_private.add_report_subject('BUYERS', 'buyers', '{buyer.read}', 'buyers', 'inserted_at');
select app_private.add_report_columns('BUYERS', '{id, full_name, first_name, last_name, legal_name, email, phone, dob,
  company, preferred_language, status, status_changed_at,
    source, occupancy_type, occupancy_type_other, financing_type, financing_contingency, amount_financed, price,
      currency, net_purchase_price, net_purchase_price_balance, ppsf,
    contract_sent_at, purchase_date, rescission_ends_at, purchase_firm_date, estimated_closing_date, closing_date,
      cancellation_date, cancellation_reason, invited_at,
    metadata, inserted_at, updated_at, project_id, unit_id, lot_id, lead_id, reservation_id, assignee_id}',
  '{id, full_name, email, phone, status, price, currency, purchase_date, closing_date, financing_type}',
  '{"dob": "buyer.pii"}');
select app_private.add_report_links('BUYERS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['unit', 'unit_id', 'units', 'coalesce(x.number, x.title)', 'text', 'Number of the unit.', ''],
  ['lot', 'lot_id', 'lots', 'coalesce(x.number, x.title)', 'text', 'Number of the lot.', ''],
  ['falloutReason', 'fallout_reason_id', 'fallout_reasons', 'x.name', 'text', 'Why it was cancelled.', '']],
    '{project, unit}');
select app_private.add_report_people('BUYERS', '{assignee}', '{assignee}');
select app_private.add_report_subject('UNITS', 'units', '{inventory.read}', 'units');
select app_private.add_report_columns('UNITS', '{id, title, number, subtitle, description, building, level, phase,
  status, standard_status, status_changed_at, price, original_list_price,
    currency, effective_bedrooms, effective_baths, effective_half_baths, effective_garage, effective_sqft,
      effective_hoa_fee, effective_orientation, ppsf, view, model, is_spec,
    is_bmr, is_furnished, is_accessible, mls_id, construction_status, listing_date, days_on_market,
      estimated_delivery_date, move_in_ready, sold_at, sold_price, closed_at,
    metadata, inserted_at, updated_at, project_id, floor_plan_id, lot_id}',
  '{id, number, title, building, level, phase, status, price, currency, effective_bedrooms, effective_baths, '
  'effective_sqft, construction_status, listing_date}',
  '{"sold_price": "sale.read"}');
select app_private.add_report_links('UNITS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['floorPlan', 'floor_plan_id', 'floor_plans', 'x.title', 'text', 'Title of the floor plan.', ''],
  ['lot', 'lot_id', 'lots', 'coalesce(x.number, x.title)', 'text', 'Number of the lot.', '']], '{project, floorPlan}');
select app_private.add_report_subject('LOTS', 'lots', '{inventory.read}', 'lots');
select app_private.add_report_columns('LOTS', '{id, title, number, block, phase, status, status_changed_at, price,
  premium, currency, area_sqft, orientation, features, parcel_number,
    multi_unit, metadata, inserted_at, updated_at, project_id}',
  '{id, number, title, block, phase, status, price, premium, currency, area_sqft}');
select app_private.add_report_links('LOTS',
  array[['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', '']], '{project}');
select app_private.add_report_subject('FLOOR_PLANS', 'floor_plans', '{inventory.read}', 'floor-plans');
select app_private.add_report_columns('FLOOR_PLANS', '{id, title, subtitle, code, description, status, home_type,
  base_price, bedrooms, bedrooms_max, baths, half_baths, garage, stories, sqft,
    sqft_max, balcony_sqft, hoa_fee, orientation, available_count, price_min, sequence, tour_url, metadata,
      inserted_at, updated_at, project_id}',
  '{id, title, subtitle, code, description, status, home_type, base_price, bedrooms, baths, half_baths, garage, '
  'stories, sqft, available_count, price_min}');
select app_private.add_report_links('FLOOR_PLANS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['currency', 'project_id', 'projects', 'x.currency', 'text', 'Currency of its amounts.', '']], '{project, currency}');
select app_private.add_report_subject('RESERVATIONS', 'reservations', '{sale.read}', 'reservations', 'inserted_at');
select app_private.add_report_columns('RESERVATIONS', '{id, number, buyer_legal_name, status, status_changed_at, price,
  list_price_snapshot, premium_snapshot, total_contract_price, ppsf, fee,
    cancellation_fee, currency, occupancy_type, financing_type, financing_contingency, preapproved, accepted_terms,
      accepted_terms_at, purchase_authorization, expires_at,
    extended_count, executed_at, cancelled_at, cancellation_reason, refunded_at, notes, metadata, inserted_at,
      updated_at, project_id, unit_id, lot_id, lead_id, buyer_id, assignee_id}',
  '{id, number, buyer_legal_name, status, price, list_price_snapshot, currency, expires_at, inserted_at}');
select app_private.add_report_links('RESERVATIONS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['unit', 'unit_id', 'units', 'coalesce(x.number, x.title)', 'text', 'Number of the unit.', ''],
  ['lot', 'lot_id', 'lots', 'coalesce(x.number, x.title)', 'text', 'Number of the lot.', ''],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', 'lead.read'],
  ['falloutReason', 'fallout_reason_id', 'fallout_reasons', 'x.name', 'text', 'Why it was cancelled.', '']],
    '{project, unit, lot}');
select app_private.add_report_people('RESERVATIONS', '{assignee}', '{assignee}');
select app_private.add_report_subject('OFFERS', 'offers', '{sale.read}', 'offers', 'inserted_at');
select app_private.add_report_columns('OFFERS', '{id, number, legal_name, round, sequence, side, kind, status,
  status_changed_at, price, delta, currency, closing_date, earnest_money, financing_type,
    financing_contingency, amount_financed, occupancy_type, requested_credits, comments, expires_at, withdrawn_at,
      manual, inserted_at, updated_at, project_id, negotiation_id, unit_id,
    lead_id, buyer_id, reservation_id}',
  '{id, number, legal_name, round, side, kind, status, price, currency, closing_date, expires_at, inserted_at}');
select app_private.add_report_links('OFFERS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['unit', 'unit_id', 'units', 'coalesce(x.number, x.title)', 'text', 'Number of the unit.', ''],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', 'lead.read'],
  ['listPrice', 'negotiation_id', 'negotiations', 'x.list_price', 'app_public.money',
    'List price when the negotiation began.', ''],
  ['floorPrice', 'negotiation_id', 'negotiations', 'app_public.negotiations_floor_price(x)', 'app_public.money',
    'The lowest price that the seller takes.', 'sale.strategy']],
  '{project, unit}');
select app_private.add_report_subject('DEPOSITS', 'deposits', '{sale.read}', 'deposits');
select app_private.add_report_columns('DEPOSITS', '{id, title, status, status_changed_at, sequence, amount, percent,
  percent_base, amount_due, amount_paid, amount_refunded, currency, due_at, is_overdue, due_rule,
    due_offset_days, paid_at, method, reference, held_by, sent_to_holder_at, released_at, refunded_at, forfeited_at,
      invoice_number, notes, is_reservation_fee, inserted_at, updated_at, project_id, lead_id,
    buyer_id, reservation_id}',
  '{id, title, status, amount_due, amount_paid, currency, due_at, is_overdue, paid_at, method, held_by}');
select app_private.add_report_links('DEPOSITS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read'],
  ['reservation', 'reservation_id', 'reservations', 'x.number', 'text', 'Number of the reservation.', 'sale.read'],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', 'lead.read']], '{project, buyer}');
select app_private.add_report_subject('APPOINTMENTS', 'appointments', '{lead.read, buyer.read}', 'appointments');
select app_private.add_report_columns('APPOINTMENTS', '{id, title, type, status, status_changed_at, starts_at, ends_at,
  time_zone, location, video_url, notes, outcome_note, cancelled_at,
    cancellation_reason, inserted_at, updated_at, project_id, lead_id, buyer_id, host_id}',
  '{id, title, type, status, starts_at, ends_at, location}');
select app_private.add_report_links('APPOINTMENTS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', ''],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read']],
    '{project, lead, buyer}');
select app_private.add_report_people('APPOINTMENTS', '{host}', '{host}');
select app_private.add_report_subject('PHONE_CALLS', 'phone_calls', '{lead.read, buyer.read}', 'phone-calls');
select app_private.add_report_columns('PHONE_CALLS', '{id, direction, status, outcome, from_number, to_number,
  started_at, ended_at, duration_seconds, notes, recording_url, inserted_at,
    updated_at, project_id, lead_id, buyer_id, user_id}',
  '{id, direction, status, outcome, from_number, to_number, started_at, duration_seconds}',
  '{"recording_url": "call.recording"}');
select app_private.add_report_links('PHONE_CALLS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', ''],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read']],
    '{project, lead, buyer}');
select app_private.add_report_people('PHONE_CALLS', '{user}', '{user}');
select app_private.add_report_subject('TASKS', 'tasks', '{org.member, lead.read, buyer.read}', 'tasks');
select app_private.add_report_columns('TASKS', '{id, title, description, type, status, status_changed_at, priority,
  due_at, is_overdue, started_at, completed_at, inserted_at, updated_at,
    project_id, lead_id, buyer_id, assignee_id}',
  '{id, title, type, status, priority, due_at, is_overdue, completed_at}');
select app_private.add_report_links('TASKS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', 'lead.read'],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read']],
    '{project, lead}');
select app_private.add_report_people('TASKS', '{assignee, created_by, completed_by}', '{assignee}');
select app_private.add_report_subject('PERSONALIZATIONS', 'personalizations', '{sale.read}', 'personalizations');
select app_private.add_report_columns('PERSONALIZATIONS', '{id, title, status, status_changed_at, submitted_at,
  approved_at, signed_at, locked_at, due_on, selections_total, discounts_total,
    credits_total, total, currency, notes, inserted_at, updated_at, project_id, unit_id, lead_id, buyer_id}',
  '{id, title, status, selections_total, discounts_total, credits_total, total, currency, due_on}');
select app_private.add_report_links('PERSONALIZATIONS', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['unit', 'unit_id', 'units', 'coalesce(x.number, x.title)', 'text', 'Number of the unit.', ''],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read'],
  ['lead', 'lead_id', 'leads', 'x.name', 'text', 'Name of the lead.', 'lead.read']], '{project, unit, buyer}');
select app_private.add_report_people('PERSONALIZATIONS', '{approved_by}');

-- An event contains the whole record, so it requires the permission to read the whole stream.
select app_private.add_report_subject('EVENTS', 'events',
  '{org.member, audit.read, project.read, lead.read, buyer.read, sale.read, inventory.read, marketing.read, '
  'finance.read, workflow.read, report.manage, org.admin, project.manage}', 'events', 'sequence');
select app_private.add_report_columns('EVENTS',
  '{id, name, occurred_at, subject_type, subject_id, actor_type, channel, request_id, changes, data, project_id}',
  '{id, name, occurred_at, subject_type, subject_id, actor_type, channel}',
    '{"changes": "audit.read", "data": "audit.read"}');
select app_private.add_report_column('EVENTS', 'sequence', 't.sequence', 'bigint',
  'Strictly increasing per organization, without gaps, in the order of commits.', null, true);
select app_private.add_report_links('EVENTS',
  array[['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', '']], '{project}');
select app_private.add_report_people('EVENTS', '{actor}', '{actor}');

select app_private.add_report_subject('CHARGES', 'processor_charges', '{finance.read}', 'charges');
select app_private.add_report_columns('CHARGES', '{id, processor_id, payment_intent_id, status, status_changed_at,
  amount, amount_refunded, amount_refundable, fee, net, currency,
    method, card_brand, card_last4, description, statement_descriptor, failure_code, failure_message, captured_at,
      last_refunded_at, disputed_at, dispute_status, metadata, inserted_at,
    updated_at, project_id, reservation_id, deposit_id, buyer_id, lead_id}',
    '{id, status, amount, amount_refunded, fee, net, currency, method, card_last4, description, captured_at}');
select app_private.add_report_links('CHARGES', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['reservation', 'reservation_id', 'reservations', 'x.number', 'text', 'Number of the reservation.', 'sale.read'],
  ['deposit', 'deposit_id', 'deposits', 'x.title', 'text', 'Title of the deposit.', 'sale.read'],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read'],
  ['payer', 'user_id', 'users', 'app_public.users_full_name(x)', 'text',
    'Name of the payer, where the viewer may see it.', '']], '{project, buyer}');

select app_private.add_report_columns('LEADS', '{unsubscribed_at}');
