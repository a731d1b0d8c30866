--! Previous: sha1:8bcf59fa9f96f5b7b0d8d0109e17e93e48786f92
--! Hash: sha1:aa17addb158752893f99c1db581f3b02724a4943
--! Message: report-charges

-- Charges as a subject of reports and exports.

select app_private.add_report_subject('CHARGES', 'processor_charges', '{finance.read}', 'charges');
select app_private.add_report_columns('CHARGES', '{id, processor_id, payment_intent_id, status, status_changed_at, amount, amount_refunded, amount_refundable, fee, net, currency,
    method, card_brand, card_last4, description, statement_descriptor, failure_code, failure_message, captured_at, last_refunded_at, disputed_at, dispute_status, metadata, inserted_at,
    updated_at, project_id, reservation_id, deposit_id, buyer_id, lead_id}',
    '{id, status, amount, amount_refunded, fee, net, currency, method, card_last4, description, captured_at}');
select app_private.add_report_links('CHARGES', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['reservation', 'reservation_id', 'reservations', 'x.number', 'text', 'Number of the reservation.', 'sale.read'],
  ['deposit', 'deposit_id', 'deposits', 'x.title', 'text', 'Title of the deposit.', 'sale.read'],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read'],
  ['payer', 'user_id', 'users', 'app_public.users_full_name(x)', 'text', 'Name of the payer, where the viewer may see it.', '']], '{project, buyer}');
