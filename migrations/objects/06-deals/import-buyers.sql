-- Buyers from CSV files: purchases made elsewhere, each with its home. A purchase takes claims and changes units and
-- leads, so the rows are processed one by one, each completely or not at all, and errors are recorded for each row.

insert into app_hidden.imports (operation, table_name, permission) values ('importBuyers', 'buyers', 'project.manage');
insert into app_hidden.import_columns (operation, position, column_name, type, required, spellings, description)
  select 'importBuyers', row_number() over (), c.* from (values
    ('unit', 'app_public.short_text', false, '{Unit #,Unit No,Unit Number,Suite,Suite #,Home}'::text[],
      'Number of a unit of the project: which purchase it is.'),
    ('lot', 'app_public.short_text', false, '{Lot #,Lot No,Lot Number}',
      'Number of a lot of the project, where it is sold without a unit.'),
    ('first_name', null, false, '{First,Given Name}', 'Given name.'),
    ('last_name', null, false, '{Last,Surname,Family Name}', 'Family name.'),
    ('legal_name', null, false, '{Name,Full Name,Buyer,Buyer Name,Purchaser,Purchaser Name}',
      'Legal name, as on the contract.'),
    ('email', null, false, '{Email,Email Address,Email Address}',
      'Email address: which purchase it is, where there is neither unit nor lot.'),
    ('phone', null, false, '{Telephone,Phone Number,Mobile,Cell}', 'Phone number in E.164, such as +14165550123.'),
    ('company', null, false, '{Organization,Firm}', 'Company that buys.'),
    ('status', null, false, '{Purchase Status,Stage}', 'How far the purchase is. Default: DRAFT.'),
    ('price', null, true, '{Purchase Price,Sale Price,Contract Price}', 'Purchase price.'),
    ('purchase_date', null, false, '{Contract Date,Sale Date,Date Signed,Signed}',
      'When all parties had signed, such as 2027-05-31.'),
    ('purchase_firm_date', null, false, '{Firm Date,Sold,Sold Date,Sold At,Sold On,Date Sold}',
      'Day on which all conditions were met, such as 2027-05-31. Default: purchaseDate.'),
    ('estimated_closing_date', null, false, '{Estimated Closing,Expected Closing}', 'Expected closing date.'),
    ('closing_date', null, false, '{Closing,Closed}', 'When it was closed.'),
    ('occupancy_type', null, false, '{Occupancy}', 'What the home is bought for, such as PRIMARY_RESIDENCE.'),
    ('financing_type', null, false, '{Financing,Loan Type}', 'How it is paid, such as CONVENTIONAL.'),
    ('financing_contingency', null, false, '{Contingent,Financing Condition}',
      'yes or no: whether it depends on a loan.'),
    ('amount_financed', null, false, '{Loan Amount,Mortgage}', 'Part of the price that is financed by a loan.'),
    ('assignee', 'app_public.email_address', false, '{Agent Email,Sales Rep,Salesperson}',
      'Email address of the member who serves the buyer.'),
    ('thoroughfare', 'app_public.short_text', false, '{Street,Address,Street Address}',
      'Street and number of the buyer.'),
    ('premise', 'app_public.short_text', false, '{}', 'Apartment or suite of the buyer.'),
    ('locality', 'app_public.short_text', false, '{City,Town}', 'City of the buyer.'),
    ('administrative_area', 'app_public.short_text', false, '{State,Province,Region}',
      'State or province of the buyer.'),
    ('postal_code', 'app_public.short_text', false, '{Zip,Zip Code,Postcode}', 'Postal code of the buyer.'),
    ('country', 'app_public.country_code', false, '{}',
      'Country of the buyer by ISO 3166-1, such as CA. Default: the one of the project.')
  ) as c (column_name, type, required, spellings, description);

comment on type app_public.import_buyers_payload is 'Result of an import of buyers.';

comment on column app_public.import_buyers_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.import_buyers_payload.created_count is E'@notNull\n\nNumber of created purchases.';
comment on column app_public.import_buyers_payload.updated_count is E'@notNull\n\nNumber of updated purchases.';
comment on column app_public.import_buyers_payload.skipped_count is
  E'@notNull\n\n'
  'Number of rows without effect, because the purchase exists and `updateExisting` is false, or because it already '
  'matches the row.';
comment on column app_public.import_buyers_payload.failed_count is E'@notNull\n\nNumber of refused rows.';
comment on column app_public.import_buyers_payload.errors is 'Errors of refused rows, in order; at most 1,000.';
comment on column app_public.import_buyers_payload.buyers is
  'Created and updated purchases, in file order; at most 1,000.';

create function app_private.try_e164(phone text, country text) returns text
language plpgsql stable as $$
begin
  return app_hidden.to_e164(phone, country);
exception when sqlstate 'PLAT0' then
  return null;
end $$;
comment on function app_private.try_e164(text, text) is
  'Like app_hidden.to_e164, but null for what is no phone number.';

create function app_private.write_imported_buyer(buyer_id uuid, entry jsonb) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.buyers;
begin
  if buyer_id is null then
    result := jsonb_populate_record(null::app_public.buyers, entry);
    insert into app_public.buyers (project_id, unit_id, lot_id, lead_id, assignee_id, first_name, last_name, legal_name,
      email, phone, company, status, price,
        purchase_date, purchase_firm_date, estimated_closing_date, closing_date, occupancy_type, financing_type,
          financing_contingency, amount_financed, address)
      values (result.project_id, result.unit_id, result.lot_id, result.lead_id, result.assignee_id, result.first_name,
        result.last_name, result.legal_name,
        result.email, result.phone, result.company, coalesce(result.status, 'DRAFT'), result.price,
          result.purchase_date, result.purchase_firm_date, result.estimated_closing_date,
        result.closing_date, result.occupancy_type, result.financing_type, result.financing_contingency,
          result.amount_financed, result.address)
      returning * into result;
    return result.id;
  end if;
  select * into result from app_public.buyers b where b.id = buyer_id;
  result := jsonb_populate_record(result, entry);
  update app_public.buyers b set assignee_id = result.assignee_id, first_name = result.first_name,
    last_name = result.last_name, legal_name = result.legal_name,
      email = result.email, phone = result.phone, company = result.company, status = result.status,
        price = result.price,
      purchase_date = result.purchase_date, purchase_firm_date = result.purchase_firm_date,
      estimated_closing_date = result.estimated_closing_date,
        closing_date = result.closing_date,
      occupancy_type = result.occupancy_type, financing_type = result.financing_type,
        financing_contingency = result.financing_contingency,
      amount_financed = result.amount_financed, address = result.address
    where b.id = buyer_id;
  return buyer_id;
end $$;
comment on function app_private.write_imported_buyer(uuid, jsonb) is
  'Creates a purchase, or updates the given one, from a row of a file.';

create function app_public.import_buyers(project_id uuid, file app_public.data_upload, dry_run boolean default null,
  update_existing boolean default null)
returns app_public.import_buyers_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  project app_public.projects;
  result app_public.import_buyers_payload;
  entry record;
  written_id uuid;
  refusal text;
  detail text;
  violated text;
  violated_table text;
begin
  project := app_private.start_import('importBuyers', project_id);
  result.dry_run := coalesce(dry_run, false);
  result.created_count := 0;
  result.updated_count := 0;
  result.skipped_count := 0;
  -- PERF: a table that grew a moment ago looks small to the planner, which then compares each row with each.
  perform set_config('enable_nestloop', 'off', true);
  perform app_private.check_import_rows('importBuyers');
  insert into pg_temp.import_errors
    select r.row, 'legal_name', 'BAD_USER_INPUT', 'Specify who buys: a name, a company or an email address.', null
    from pg_temp.import_rows r where num_nonnulls(r.first_name, r.last_name, r.legal_name, r.company, r.email) = 0;
  insert into pg_temp.import_errors
    select r.row, 'phone', 'BAD_USER_INPUT', 'Not a valid phone number; use one such as +1 416 555 0123.',
      left(r.phone, 200) from pg_temp.import_rows r
    where r.phone is not null and app_private.try_e164(r.phone, coalesce((project.address).country, 'US')) is null
      and not exists (select from pg_temp.import_errors e where e.row = r.row and e.column_name = 'phone');
  insert into pg_temp.import_errors
    select r.row, 'lot', 'BAD_USER_INPUT', 'Specify the unit or the lot, not both.', left(r.lot, 200)
    from pg_temp.import_rows r where num_nonnulls(r.unit, r.lot) = 2;
  insert into pg_temp.import_errors
    select d.row, d.column_name, 'CONFLICT', format('Row %s is already about the same purchase.', d.first_row),
      left(d.value, 200)
    from (select r.row, k.column_name, k.value,
      first_value(r.row) over (partition by k.column_name, lower(k.value) order by r.row) as first_row
      from pg_temp.import_rows r
      cross join lateral (select case when r.unit is not null then 'unit' when r.lot is not null then 'lot'
        else 'email' end as column_name,
        coalesce(r.unit, r.lot, r.email) as value) k
      where k.value is not null) d
    where d.row <> d.first_row;
  insert into pg_temp.import_errors
    select r.row, 'unit', 'NOT_FOUND', 'There is no such unit in this project.', left(r.unit, 200)
      from pg_temp.import_rows r
    where r.unit is not null and not exists (select from app_public.units u
      where u.project_id = project.id and u.deleted_at is null and lower(u.number) = lower(r.unit));
  insert into pg_temp.import_errors
    select r.row, 'lot', 'NOT_FOUND', 'There is no such lot in this project.', left(r.lot, 200)
      from pg_temp.import_rows r
    where r.lot is not null and not exists (select from app_public.lots l
      where l.project_id = project.id and l.deleted_at is null and lower(l.number) = lower(r.lot));
  insert into pg_temp.import_errors
    select r.row, 'assignee', 'NOT_FOUND', 'There is no such member in the organization of the project.',
      left(r.assignee, 200) from pg_temp.import_rows r
    where r.assignee is not null and not exists (select from app_hidden.user_identities i
      join app_public.organization_user_connections m on m.user_id = i.user_id
        and m.organization_id = project.organization_id
      where i.email = lower(r.assignee));

  -- The resulting values of each purchase; empty cells are ignored.
  create temp table import_ready on commit drop as
    select r.row, u.id as unit_id, l.id as lot_id, b.id as existing_id, b.status as status_before,
      case when u.id is not null then u.lot_id else l.id end as locked_lot,
      coalesce(r.status, b.status, 'DRAFT') as status, b.fallout_reason_id,
      -- A lead with the address becomes the lead of the purchase, the open one or else the latest; not of a second one
      -- without a home.
      case when b.id is null then (select d.id
        -- PERF: by the index of addresses alone. In a table that has just grown, that of the project looks as good.
        from (select x.* from app_public.leads x where x.email = lower(r.email) and x.deleted_at is null offset 0) d
        where d.project_id = project.id and (num_nonnulls(u.id, l.id) > 0
          or not exists (select from app_public.buyers o where o.lead_id = d.id
            and o.unit_id is null and o.lot_id is null and o.status <> 'CANCELLED' and o.deleted_at is null))
        order by d.status in ('LOST', 'UNQUALIFIED', 'CONVERTED'), d.id desc limit 1) end as lead_id,
      b.id is not null and b.email <> lower(r.email) as is_other,
      jsonb_strip_nulls(jsonb_build_object('first_name', r.first_name, 'last_name', r.last_name, 'legal_name',
        r.legal_name, 'email', lower(r.email),
        'phone', app_private.try_e164(r.phone, coalesce((project.address).country, 'US')), 'company', r.company,
          'status', r.status, 'price', r.price,
        'purchase_date', r.purchase_date, 'purchase_firm_date', r.purchase_firm_date, 'estimated_closing_date',
          r.estimated_closing_date, 'closing_date', r.closing_date,
        'occupancy_type', r.occupancy_type, 'financing_type', r.financing_type, 'financing_contingency',
          r.financing_contingency::boolean,
        'amount_financed', r.amount_financed,
        'assignee_id', (select i.user_id from app_hidden.user_identities i where i.email = lower(r.assignee)),
        'address', case when num_nonnulls(r.thoroughfare, r.premise, r.locality, r.administrative_area, r.postal_code,
          r.country) > 0 then
          jsonb_strip_nulls(coalesce(to_jsonb(b.address), '{}'))
            || jsonb_strip_nulls(jsonb_build_object('thoroughfare', r.thoroughfare, 'premise', r.premise,
            'locality', r.locality, 'administrative_area', r.administrative_area, 'postal_code', r.postal_code,
            'country', coalesce(r.country, (b.address).country, (project.address).country, 'US'))) end)) as entry
    from pg_temp.import_rows r
    left join app_public.units u on u.project_id = project.id and u.deleted_at is null
      and lower(u.number) = lower(r.unit)
    left join app_public.lots l on l.project_id = project.id and l.deleted_at is null and lower(l.number) = lower(r.lot)
    -- PERF: each kind of key uses its own index, and LIMIT makes it one look-up per row; a join would read all
    -- buyers.
    left join lateral (select x.id from app_public.buyers x where x.unit_id = u.id and x.deleted_at is null
      and x.status <> 'CANCELLED' limit 1) of_unit on true
    left join lateral (select x.id from app_public.buyers x where x.lot_id = l.id and x.unit_id is null
      and x.deleted_at is null and x.status <> 'CANCELLED' limit 1) of_lot on true
    -- PERF: the purchases of the project without a home, once. In a table that has just grown, looking each address up
    -- by the index of projects looks as good as by that of addresses.
    left join (select distinct on (x.email) x.email, x.id from app_public.buyers x
      where x.project_id = project.id and x.email is not null and x.deleted_at is null and x.status <> 'CANCELLED'
        and x.unit_id is null and x.lot_id is null
      order by x.email, x.id) of_email on of_email.email = lower(r.email) and r.unit is null and r.lot is null
    left join lateral (select x.* from app_public.buyers x
      where x.id = coalesce(of_unit.id, of_lot.id, of_email.id) limit 1) b on true;
  insert into pg_temp.import_errors
    select r.row, case when r.unit_id is not null then 'unit' else 'lot' end, 'INVENTORY_UNAVAILABLE',
      'Another buyer, with a different email address, has this purchase.', null
    from pg_temp.import_ready r where r.is_other;
  perform app_private.check_import_states('buyer');
  delete from pg_temp.import_ready r using pg_temp.import_errors e where e.row = r.row;
  -- Existing values of the purchase cause no changes.
  delete from pg_temp.import_ready r using app_public.buyers b
    where b.id = r.existing_id
      and b.id = any (array(select e.existing_id from pg_temp.import_ready e where e.existing_id is not null))
      and (not coalesce(update_existing, false)
      or to_jsonb(jsonb_populate_record(b, r.entry)) = to_jsonb(b));
  get diagnostics result.skipped_count = row_count;
  perform set_config('enable_nestloop', 'on', true);

  create temp table import_written (row int not null, id uuid not null) on commit drop;
  begin
    -- In the order of the homes, as every other deal locks them too.
    for entry in select * from pg_temp.import_ready r order by r.locked_lot, r.unit_id, r.row loop
      begin
        if entry.existing_id is not null then
          perform app_private.lock_purchase(entry.existing_id);
        end if;
        written_id := app_private.write_imported_buyer(entry.existing_id,
          entry.entry || jsonb_strip_nulls(jsonb_build_object(
          'project_id', project.id, 'unit_id', entry.unit_id, 'lot_id', entry.lot_id, 'lead_id', entry.lead_id)));
        insert into pg_temp.import_written (row, id) values (entry.row, written_id);
        if entry.existing_id is null then
          result.created_count := result.created_count + 1;
        else
          result.updated_count := result.updated_count + 1;
        end if;
      exception when sqlstate 'PLAT0' then
        get stacked diagnostics refusal = message_text, detail = pg_exception_detail;
        insert into pg_temp.import_errors
          select entry.row, (select c.column_name from app_hidden.import_columns c
              where c.operation = 'importBuyers' and app_hidden.camel(c.column_name) in (detail::jsonb ->> 'field',
                regexp_replace(detail::jsonb ->> 'field', 'Id$', ''))),
            detail::jsonb ->> 'code', refusal, null;
      when check_violation or unique_violation or exclusion_violation then
        get stacked diagnostics violated = constraint_name, violated_table = table_name;
        insert into pg_temp.import_errors
          select entry.row, null, case when sqlstate = '23514' then 'BAD_USER_INPUT' else 'CONFLICT' end,
            coalesce((select obj_description(c.oid, 'pg_constraint') from pg_constraint c where c.conname = violated
              limit 1),
              (select obj_description(c.oid, 'pg_class') from pg_class c where c.relname = violated limit 1),
              'This row conflicts with an existing record.'), null;
      end;
    end loop;
    select count(distinct e.row) into result.failed_count from pg_temp.import_errors e;
    result.errors := app_private.import_errors();
    result.buyers := array(select b from pg_temp.import_written w join app_public.buyers b on b.id = w.id order by w.row
      limit 1000);
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.import_buyers to plat_user, plat_anonymous;
comment on function app_public.import_buyers is
  E'@arg projectId Id of the project that the purchases belong to.\n@arg file CSV file in UTF-8, separated '
  'by commas or semicolons, with column names in the first row. At most 50 MB and 200,000 rows.\n@arg dryRun If '
  'true, returns what would happen, and changes nothing.\n@arg updateExisting Updates existing purchases, matched '
  'by unit, lot or email address; empty cells change nothing. If false, existing purchases stay unchanged.\n\n'
  'Imports buyers and their purchases from CSV: applies valid rows and reports errors of the others. A lead with '
  'the same email address becomes the lead of the purchase. No notifications are sent.';
