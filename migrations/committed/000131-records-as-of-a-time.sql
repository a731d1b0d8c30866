--! Previous: sha1:c1673d55958c81bb42c6562b627c137b94a99257
--! Hash: sha1:6768a163a6636fdd2530ce9bfda4bce7f39c3268
--! Message: records-as-of-a-time

-- Records as they were at a time. Types of their own: caches of clients would merge a former unit into the present one.
create type app_public.unit_as_of as (
  unit_id uuid, project_id uuid, floor_plan_id uuid, lot_id uuid, title app_public.short_text,
  number app_public.short_text, subtitle app_public.short_text, description app_public.long_text,
  building app_public.short_text, level int, phase app_public.short_text, status app_public.unit_status,
  status_changed_at timestamptz, price app_public.money, original_list_price app_public.money,
  currency app_public.currency_code, bedrooms int, baths int, half_baths int, garage int, sqft int,
  hoa_fee app_public.money, orientation app_public.orientation, view app_public.short_text,
  address app_public.address, model boolean, is_spec boolean, is_bmr boolean, is_furnished boolean,
  is_accessible boolean, mls_id app_public.short_text, construction_status app_public.unit_construction_status,
  listing_date date, estimated_delivery_date date, move_in_ready boolean, sold_at timestamptz,
  sold_price app_public.money, closed_at timestamptz, metadata jsonb
);
create type app_public.reservation_as_of as (
  reservation_id uuid, project_id uuid, unit_id uuid, lot_id uuid, lead_id uuid, purchase_id uuid, assignee_id uuid,
  status app_public.reservation_status, status_changed_at timestamptz, number text,
  buyer_legal_name app_public.short_text, price app_public.money, list_price_snapshot app_public.money,
  premium_snapshot app_public.money, fee app_public.money, cancellation_fee app_public.money,
  currency app_public.currency_code, occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text, financing_type app_public.financing_type, financing_contingency boolean,
  preapproved boolean, accepted_terms boolean, accepted_terms_at timestamptz, purchase_authorization boolean,
  expiration int, expires_at timestamptz, extended_count int, executed_at timestamptz, cancelled_at timestamptz,
  cancellation_reason app_public.long_text, fallout_reason_id uuid, refunded_at timestamptz, is_self_service boolean,
  transaction_id app_public.short_text, notes app_public.long_text, metadata jsonb
);
