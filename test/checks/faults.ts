/** Violations of the rules, one for each typical omission, in tables that otherwise follow all rules. */
export interface Fault {
  /** The only rule that finds it. */
  rule: string;
  /** A table `like app_private.project_record` that is created first, by a generator, with grants and comments. */
  table?: string;
  sql: string;
  /** The reported object. Default: `app_public.<table>`. */
  object?: string;
  /** Pattern of the message. */
  says: RegExp;
}

const can = "app_hidden.project_can(r.project_id, r.organization_id, 'lead.read')";

/** Masks the column `name` of a table correctly. */
const mask = (table: string, tags = "") => `
  comment on column app_public.${table}.name is E'@masked\\n${tags}\\nWhat it is called.';
  create function app_public.${table}_name(r app_public.${table}) returns text language sql stable
    as $$ select case when ${can} then r.name end $$;
  grant execute on function app_public.${table}_name to plat_user, plat_anonymous;
  comment on function app_public.${table}_name is 'What it is called; null without the permission.';
  select app_private.make_masked_view('${table}')`;

export const faults: Fault[] = [
  // Personal data
  {
    rule: "personal-column",
    table: "visits",
    sql: `alter table app_public.visits add lead_id uuid, add constraint visits_lead_id_fkey foreign key (lead_id, project_id)
        references app_public.leads (id, project_id) on delete cascade;
      create index visits_lead on app_public.visits (lead_id);
      comment on constraint visits_lead_id_fkey on app_public.visits is E'@fieldName lead\\n@backwardBehavior -*\\n\\nWho came.';
      comment on column app_public.visits.lead_id is E'@behavior -*\\n\\nWho came.'`,
    object: "app_public.visits.name",
    says: /`@personal contract`/,
  },
  {
    rule: "personal-tag",
    table: "views",
    sql: "comment on column app_public.views.name is E'@personal because\\n\\nWhat it is called.'",
    object: "app_public.views.name",
    says: /exactly one of/,
  },
  // Tables
  {
    rule: "table-row-security",
    table: "attics",
    sql: "alter table app_public.attics disable row level security",
    says: /`alter table app_public\.attics enable row level security;`/,
  },
  {
    rule: "table-name",
    table: "balcony",
    sql: "select",
    says: /plural/,
  },
  {
    rule: "partition-alike",
    sql: "alter table app_private.search_leads disable row level security",
    object: "app_private.search_leads",
    says: /enable row level security/,
  },
  {
    rule: "rows-of-partitions",
    sql: "insert into app_private.retention (relation, over) values ('app_public.events', 'false')",
    object: "app_public.events",
    says: /by their key/,
  },
  {
    rule: "table-tenant",
    sql: `create table app_public.cellars (id uuid primary key default uuidv7(), name app_public.short_text not null);
      alter table app_public.cellars enable row level security;
      create policy everybody on app_public.cellars for select to plat_user using (true);
      create policy everybody_insert on app_public.cellars for insert to plat_user with check (true);
      grant select, insert (name) on app_public.cellars to plat_user;
      comment on table app_public.cellars is 'A room below.';
      comment on column app_public.cellars.name is 'What it is called.'`,
    object: "app_public.cellars",
    says: /`organization_id uuid not null`/,
  },
  {
    rule: "table-tenant-index",
    table: "doors",
    sql: "drop index app_public.doors_organization",
    says: /`create index doors_organization on app_public\.doors \(organization_id, id\);`/,
  },
  {
    rule: "table-key",
    table: "entrances",
    sql: "alter table app_public.entrances drop constraint entrances_pkey",
    says: /primary key/,
  },
  {
    rule: "index-twice",
    table: "fences",
    sql: "create index fences_again on app_public.fences (organization_id) where deleted_at is null",
    object: "app_public.fences_again",
    says: /Drop it: fences_organization has the same columns and more\./,
  },
  {
    rule: "column-reg-type",
    table: "garages",
    sql: `alter table app_public.garages add column opened_by regproc;
      comment on column app_public.garages.opened_by is E'@behavior -*\\n\\nThe function that opens it.'`,
    object: "app_public.garages.opened_by",
    says: /text/,
  },
  {
    rule: "type-enum",
    sql: "create type app_public.mood as enum ('GOOD', 'BAD')",
    object: "app_public.mood",
    says: /`select app_private\.create_enum\('mood', …\);`/,
  },
  // Foreign keys
  {
    rule: "foreign-key-index",
    table: "halls",
    sql: `alter table app_public.halls add column lead_id uuid,
        add constraint halls_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id);
      comment on column app_public.halls.lead_id is 'Who asked for it.';
      comment on column app_public.halls.name is E'@impersonal\\n\\nWhat it is called.';
      comment on constraint halls_lead_id_fkey on app_public.halls is E'@backwardBehavior -*\\n\\nWho asked for it.'`,
    object: "app_public.halls.halls_lead_id_fkey",
    says: /`create index halls_lead on app_public\.halls \(lead_id\);`/,
  },
  {
    rule: "relation-not-null",
    table: "alcoves",
    sql: `comment on constraint alcoves_project_id_fkey on app_public.alcoves is E'@notNull\\n@backwardBehavior -*\\n\\nIts project.'`,
    object: "app_public.alcoves.alcoves_project_id_fkey",
    says: /Remove `@notNull` from the comment of the constraint/,
  },
  {
    rule: "filter-ids",
    table: "gates",
    sql: `comment on column app_public.gates.project_id is E'@filter projectId\\n\\nThe project that it belongs to.'`,
    object: "app_public.gates.project_id",
    says: /Write `@filter projectIds`, and `@formerFilter projectId Removed after …`/,
  },
  {
    rule: "foreign-key-tenant",
    table: "islands",
    sql: `alter table app_public.islands add column lead_id uuid references app_public.leads;
      create index islands_lead on app_public.islands (lead_id);
      comment on column app_public.islands.lead_id is 'Who asked for it.';
      comment on column app_public.islands.name is E'@impersonal\\n\\nWhat it is called.';
      comment on constraint islands_lead_id_fkey on app_public.islands is E'@backwardBehavior -*\\n\\nWho asked for it.'`,
    object: "app_public.islands.islands_lead_id_fkey",
    says: /`foreign key \(lead_id, project_id\) references app_public\.leads \(id, project_id\)`/,
  },
  {
    rule: "tenant-foreign-key",
    table: "arches",
    sql: `alter table app_public.arches drop constraint arches_project_id_fkey, add constraint arches_organization_id_fkey
        foreign key (organization_id) references app_public.organizations;
      comment on constraint arches_organization_id_fkey on app_public.arches is E'@backwardBehavior -*\\n\\nThe organization.'`,
    object: "app_public.arches.project_id",
    says: /`constraint arches_project_id_fkey foreign key \(project_id, organization_id\) references app_public\.projects/,
  },
  // Grants and policies
  {
    rule: "table-grant",
    table: "jetties",
    sql: `revoke all on app_public.jetties from plat_user, plat_anonymous;
      do $$ declare p record; begin for p in select * from pg_policies where tablename = 'jetties' loop
        execute format('drop policy %I on app_public.jetties', p.policyname); end loop; end $$`,
    says: /`grant select on app_public\.jetties to plat_user, plat_anonymous;`/,
  },
  {
    rule: "table-grant",
    sql: "revoke select on app_public.price_changes from plat_anonymous",
    object: "app_public.price_changes",
    says: /`grant select on app_public\.price_changes to plat_user, plat_anonymous;`/,
  },
  {
    rule: "worker-table",
    table: "quays",
    sql: `grant select on app_public.quays to plat_worker;
      create policy worker on app_public.quays for select to plat_worker using (true)`,
    says: /Revoke the grant from plat_worker/,
  },
  {
    rule: "worker-function",
    sql: "grant execute on function app_private.hit_tracker to plat_worker",
    object: "app_private.hit_tracker(text,boolean)",
    says: /`revoke execute on function app_private\.hit_tracker\(text,boolean\) from plat_worker;`/,
  },
  {
    rule: "function-grant-unused",
    sql: "grant execute on function app_private.link_key() to plat_user",
    object: "app_private.link_key() plat_user",
    says: /`revoke execute on function app_private\.link_key\(\) from plat_user;`/,
  },
  {
    rule: "function-grant-unused",
    sql: "grant execute on function app_hidden.masked(app_public.units) to plat_user",
    object: "app_hidden.masked(app_public.units) plat_user",
    says: /`revoke execute on function app_hidden\.masked\(app_public\.units\) from plat_user;`/,
  },
  {
    rule: "function-grant-unused",
    sql: "grant execute on function app_private.link_key() to plat_authenticator",
    object: "app_private.link_key() plat_authenticator",
    says: /`revoke execute on function app_private\.link_key\(\) from plat_authenticator;`/,
  },
  {
    rule: "policy-missing",
    table: "kitchens",
    sql: "drop policy writers_update on app_public.kitchens",
    object: "app_public.kitchens update",
    says: /`create policy … on app_public\.kitchens for update to plat_user using \(…\);`/,
  },
  {
    rule: "policy-without-grant",
    table: "ladders",
    sql: "revoke delete on app_public.ladders from plat_user",
    object: "app_public.ladders writers_delete",
    says: /`grant delete on app_public\.ladders to plat_user;`/,
  },
  {
    rule: "grant-columns",
    table: "mirrors",
    sql: "grant insert on app_public.mirrors to plat_user",
    says: /`grant insert \(column, …\) on app_public\.mirrors to plat_user;`/,
  },
  {
    rule: "grant-anonymous",
    table: "niches",
    sql: `grant delete on app_public.niches to plat_anonymous;
      create policy nobody on app_public.niches for delete to plat_anonymous using (false)`,
    says: /`delete` from plat_anonymous/,
  },
  {
    rule: "grant-private",
    sql: `create table app_private.ovens (id uuid primary key);
      alter table app_private.ovens enable row level security;
      comment on table app_private.ovens is 'Where it is hot.';
      create policy everybody on app_private.ovens for select to plat_user using (true);
      grant select on app_private.ovens to plat_user`,
    object: "app_private.ovens",
    says: /plat_user/,
  },
  {
    rule: "view-invoker",
    table: "panels",
    sql: `create view app_public.all_panels as select id from app_public.panels;
      grant select on app_public.all_panels to plat_user, plat_anonymous;
      comment on view app_public.all_panels is 'All panels.'`,
    object: "app_public.all_panels",
    says: /`with \(security_invoker = true\)`/,
  },
  {
    rule: "view-barrier",
    table: "quarries",
    sql: `create view app_public.some_quarries with (security_invoker = true) as
        select id from app_public.quarries where name <> 'secret';
      grant select on app_public.some_quarries to plat_user, plat_anonymous;
      comment on view app_public.some_quarries is 'Some quarries.'`,
    object: "app_public.some_quarries",
    says: /security_barrier = true/,
  },
  {
    rule: "function-grant",
    table: "ramps",
    sql: `create function app_public.ramps_length(r app_public.ramps) returns int language sql stable as $$ select 1 $$;
      comment on function app_public.ramps_length is E'@measures nothing\\n\\nHow long it is.'`,
    object: "app_public.ramps_length(app_public.ramps)",
    says: /`grant execute on function app_public\.ramps_length\(app_public\.ramps\) to plat_user, plat_anonymous;`/,
  },
  {
    rule: "function-grant-missing",
    sql: "revoke execute on function app_hidden.transitions_from(text, jsonb) from plat_anonymous",
    object: "app_hidden.transitions_from(text,jsonb) plat_anonymous",
    says: /`grant execute on function app_hidden\.transitions_from\(text,jsonb\) to plat_anonymous;`/,
  },
  {
    rule: "function-grant-missing",
    sql: "revoke execute on function app_hidden.units_with_words(text) from plat_user",
    object: "app_hidden.units_with_words(text) plat_user",
    says: /`grant execute on function app_hidden\.units_with_words\(text\) to plat_user;`/,
  },
  {
    rule: "service-grant",
    sql: "revoke execute on function app_private.authenticate_access_token from plat_authenticator",
    object: "app_private.authenticate_access_token(bytea,text)",
    says: /to plat_authenticator;`/,
  },
  {
    rule: "function-public",
    table: "stairs",
    sql: `create function app_public.stairs_count(r app_public.stairs) returns int
        language sql stable security definer set search_path = pg_catalog, pg_temp as $$ select case when ${can} then 1 end $$;
      grant execute on function app_public.stairs_count to public;
      comment on function app_public.stairs_count is E'@measures nothing\\n\\nHow many there are.'`,
    object: "app_public.stairs_count(app_public.stairs)",
    says: /`revoke all on function app_public\.stairs_count\(app_public\.stairs\) from public;`/,
  },
  {
    rule: "policy-role",
    table: "terraces",
    sql: "create policy all_of_us on app_public.terraces for select using (false)",
    object: "app_public.terraces all_of_us",
    says: /`to plat_user`/,
  },
  {
    rule: "policy-identity",
    table: "urns",
    sql: "create policy own on app_public.urns for select to plat_user using (id = app_public.current_user_id())",
    object: "app_public.urns own",
    says: /`\(select app_public\.current_user_id\(…\)\)`/,
  },
  {
    rule: "policy-per-row",
    table: "vaults",
    sql: `create policy seers on app_public.vaults for select to plat_user
      using (app_hidden.project_can(project_id, organization_id, 'lead.read'))`,
    object: "app_public.vaults seers",
    says: /call the definer function app_hidden\.project_can\(uuid,uuid,text\) for each row: compare a column/,
  },
  {
    rule: "policy-volatile",
    table: "walls",
    sql: `create function app_private.heads() returns boolean language sql volatile as $$ select random() < 0.5 $$;
      grant execute on function app_private.heads to plat_user;
      create policy lucky on app_public.walls for select to plat_user using ((select app_private.heads()))`,
    object: "app_public.walls lucky",
    says: /Declare app_private\.heads\(\) stable/,
  },
  {
    rule: "policy-index",
    table: "yards",
    sql: `alter table app_public.yards add column keeper_id uuid;
      comment on column app_public.yards.keeper_id is 'Who looks after it.';
      create policy keepers on app_public.yards for select to plat_user
        using (keeper_id = (select app_public.current_user_id()))`,
    object: "app_public.yards.keeper_id",
    says: /`create index yards_keeper on app_public\.yards \(keeper_id\);`: the policy keepers/,
  },
  // Functions
  {
    rule: "definer-search-path",
    table: "aisles",
    sql: `create function app_public.aisles_width(r app_public.aisles) returns int
        language sql stable security definer as $$ select case when ${can} then 1 end $$;
      grant execute on function app_public.aisles_width to plat_user, plat_anonymous;
      comment on function app_public.aisles_width is E'@measures nothing\\n\\nHow wide it is.'`,
    object: "app_public.aisles_width(app_public.aisles)",
    says: /`set search_path = pg_catalog, pg_temp`/,
  },
  {
    rule: "invoker-search-path",
    table: "barns",
    sql: `create function app_public.barns_width(r app_public.barns) returns int
        language sql stable set search_path = pg_catalog, pg_temp as $$ select 1 $$;
      grant execute on function app_public.barns_width to plat_user, plat_anonymous;
      comment on function app_public.barns_width is E'@measures nothing\\n\\nHow wide it is.'`,
    object: "app_public.barns_width(app_public.barns)",
    says: /Remove `set search_path`/,
  },
  {
    rule: "rows-compared",
    table: "barrels",
    sql: `create function app_private.tg_barrels__watch() returns trigger language plpgsql volatile as $$ begin
        perform from new_rows n join old_rows o on o.id = n.id; return null; end $$;
      create trigger _500_watch after update on app_public.barrels referencing old table as old_rows new table as new_rows
        for each statement execute function app_private.tg_barrels__watch()`,
    object: "app_private.tg_barrels__watch()",
    says: /`full join old_rows`/,
  },
  {
    rule: "definer-viewer",
    table: "chimneys",
    sql: `create function app_public.chimneys_neighbours(r app_public.chimneys) returns bigint
        language sql stable security definer set search_path = pg_catalog, pg_temp
        as $$ select count(*) from app_public.chimneys c where c.id <> r.id $$;
      grant execute on function app_public.chimneys_neighbours to plat_user, plat_anonymous;
      comment on function app_public.chimneys_neighbours is E'@measures nothing\\n\\nHow many others there are.'`,
    object: "app_public.chimneys_neighbours(app_public.chimneys)",
    says: /`@withoutViewer …`/,
  },
  {
    rule: "operation-viewer",
    sql: `create function app_public.knock() returns boolean language sql volatile as $$ select true $$;
      grant execute on function app_public.knock to plat_user, plat_anonymous;
      comment on function app_public.knock is 'Says that somebody is there.'`,
    object: "app_public.knock()",
    says: /`perform app_hidden\.require_viewer\(\);`/,
  },
  {
    rule: "record-function",
    table: "balconies",
    sql: `create function app_public.balconies_neighbour(b app_public.balconies) returns app_public.balconies language sql stable as
        $$ select n.* from app_public.balconies n where n.project_id = b.project_id and n.id > b.id order by n.id limit 1 $$;
      comment on function app_public.balconies_neighbour is 'The next one.';
      grant execute on function app_public.balconies_neighbour to plat_user, plat_anonymous`,
    object: "app_public.balconies_neighbour(app_public.balconies)",
    says: /Write `returns setof app_public\.balconies language sql stable rows 1`/,
  },
  {
    rule: "lock-of-everybody",
    table: "hallways",
    sql: `create function app_private.tg_hallways__count() returns trigger language plpgsql volatile as $$
      begin perform pg_advisory_xact_lock(hashtextextended('hallways', 0)); return null; end $$;
      create trigger _500_count after insert on app_public.hallways for each row execute function app_private.tg_hallways__count()`,
    object: "app_private.tg_hallways__count()",
    says: /pg_try_advisory_xact_lock/,
  },
  {
    rule: "lock-and-read",
    table: "mailrooms",
    sql: `create function app_private.tg_mailrooms__number() returns trigger language plpgsql volatile as $$
      begin
        if pg_try_advisory_xact_lock(hashtextextended('mailrooms ' || new.project_id, 0))
          and not exists (select from app_public.mailrooms m where m.project_id = new.project_id) then
          return new;
        end if;
        return null;
      end $$;
      create trigger _500_number before insert on app_public.mailrooms for each row execute function app_private.tg_mailrooms__number()`,
    object: "app_private.tg_mailrooms__number()",
    says: /Take the lock by a statement of its own/,
  },
  {
    rule: "job-key-of-everybody",
    table: "letterboxes",
    sql: `create function app_private.tg_letterboxes__count() returns trigger language plpgsql volatile security definer
      set search_path = pg_catalog, pg_temp as $$
      begin perform app_private.add_job('search__catch_up', job_key => 'letterboxes'); return null; end $$;
      create trigger _500_count after insert on app_public.letterboxes for each row execute function app_private.tg_letterboxes__count()`,
    object: "app_private.tg_letterboxes__count()",
    says: /job_key/,
  },
  {
    rule: "function-unused",
    sql: "create function app_hidden.calls_nobody() returns int language sql immutable as $$ select 1 $$; revoke all on function app_hidden.calls_nobody from plat_user, plat_anonymous",
    object: "app_hidden.calls_nobody()",
    says: /^Drop it/,
  },
  {
    rule: "trigger-unused",
    sql: `create function app_private.tg__never_run() returns trigger language plpgsql volatile as $$ begin return new; end $$`,
    object: "app_private.tg__never_run()",
    says: /create trigger _NNN_…/,
  },
  {
    rule: "trigger-name",
    table: "decks",
    sql: `create trigger touch before update on app_public.decks for each row execute function app_private.tg__touch()`,
    object: "app_public.decks touch",
    says: /_NNN_name/,
  },
  {
    rule: "trigger-function-name",
    table: "eaves",
    sql: `create function app_private.eaves_check() returns trigger language plpgsql volatile as $$ begin return new; end $$;
      create trigger _200_check before insert on app_public.eaves for each row execute function app_private.eaves_check()`,
    object: "app_private.eaves_check()",
    says: /tg_<table>__<task>/,
  },
  // Comments
  {
    rule: "comment-table",
    table: "floors",
    sql: "comment on table app_public.floors is '@portfolio marketing.read'",
    says: /`comment on table app_public\.floors is '…';`/,
  },
  {
    rule: "comment-column",
    table: "gardens",
    sql: "comment on column app_public.gardens.name is null",
    object: "app_public.gardens.name",
    says: /`comment on column app_public\.gardens\.name is '…';`/,
  },
  {
    rule: "comment-function",
    table: "hedges",
    sql: `create function app_public.hedges_height(r app_public.hedges) returns int language sql stable as $$ select 1 $$;
      grant execute on function app_public.hedges_height to plat_user, plat_anonymous`,
    object: "app_public.hedges_height(app_public.hedges)",
    says: /`comment on function app_public\.hedges_height\(app_public\.hedges\) is '…';`/,
  },
  {
    rule: "comment-argument",
    sql: `create function app_public.paint(color text) returns boolean
        language plpgsql volatile as $$ begin perform app_hidden.require_viewer(); return true; end $$;
      grant execute on function app_public.paint to plat_user, plat_anonymous;
      comment on function app_public.paint is 'Paints everything.'`,
    object: "app_public.paint(text) color",
    says: /`@arg color …`/,
  },
  {
    rule: "comment-type",
    sql: "create domain app_public.shade as text",
    object: "app_public.shade",
    says: /`comment on domain app_public\.shade is '…';`/,
  },
  {
    rule: "comment-check",
    table: "inns",
    sql: "alter table app_public.inns add constraint inns_name_short check (length(name) < 100)",
    object: "app_public.inns.inns_name_short",
    says: /`comment on constraint inns_name_short on app_public\.inns is '…';`/,
  },
  {
    rule: "comment-check",
    sql: `create domain app_public.tint as text constraint tint_known check (value <> '');
      comment on domain app_public.tint is 'A color.'`,
    object: "app_public.tint.tint_known",
    says: /`comment on constraint tint_known on domain app_public\.tint is '…';`/,
  },
  {
    rule: "comment-unique",
    table: "joists",
    sql: "create unique index joists_name on app_public.joists (project_id, lower(name)) where deleted_at is null",
    object: "app_public.joists.joists_name",
    says: /`comment on index app_public\.joists_name is 'There is … already\.';`/,
  },
  {
    rule: "comment-measure",
    table: "lanes",
    sql: `alter table app_public.lanes add width int;
      comment on column app_public.lanes.width is 'How wide it is.'`,
    object: "app_public.lanes.width",
    says: /`@measures quantity`, .* into the comment of column app_public\.lanes\.width/,
  },
  {
    rule: "comment-measure",
    table: "mounds",
    sql: `create function app_public.mounds_height(m app_public.mounds) returns numeric language sql stable as $$ select 1.5 $$;
      grant execute on function app_public.mounds_height to plat_user, plat_anonymous;
      comment on function app_public.mounds_height is E'@measures length\\n\\nHow high it is.'`,
    object: "app_public.mounds_height(app_public.mounds)",
    says: /`@measures quantity`, .* into the comment of function app_public\.mounds_height/,
  },
  {
    rule: "comment-foreign-key",
    table: "kiosks",
    sql: `alter table app_public.kiosks add column lead_id uuid,
        add constraint kiosks_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id);
      create index kiosks_lead on app_public.kiosks (lead_id);
      comment on column app_public.kiosks.lead_id is 'Who asked for it.';
      comment on column app_public.kiosks.name is E'@impersonal\\n\\nWhat it is called.'`,
    object: "app_public.kiosks.kiosks_lead_id_fkey",
    says: /`comment on constraint kiosks_lead_id_fkey on app_public\.kiosks is E'@backwardBehavior -\*/,
  },
  // Principals
  {
    rule: "principal",
    table: "wharves",
    sql: `alter table app_public.wharves add column requested_by_id uuid;
      comment on column app_public.wharves.requested_by_id is 'Who asked for it.'`,
    object: "app_public.wharves.requested_by_id",
    says: /`app_private\.make_principal\('app_public', 'wharves', …\)`.*`@inert …`/,
  },
  {
    rule: "principal-token",
    table: "wells",
    sql: `alter table app_public.wells add column lender_id uuid,
        add constraint wells_lender_id_fkey foreign key (lender_id) references app_public.access_tokens;
      create index wells_lender on app_public.wells (lender_id);
      comment on column app_public.wells.lender_id is 'The token that lent it.';
      comment on constraint wells_lender_id_fkey on app_public.wells is E'@backwardBehavior -*\\n\\nThe token that lent it.'`,
    object: "app_public.wells.wells_lender_id_fkey",
    says: /make_principal\('app_public', 'wells', …\)/,
  },
  // Masks
  {
    rule: "masked-column",
    table: "lofts",
    sql: "comment on column app_public.lofts.name is 'What it is called; null without the permission lead.read.'",
    object: "app_public.lofts.name",
    says: /`@masked`.* a function lofts_name\(app_public\.lofts\)/,
  },
  {
    rule: "masked-function",
    table: "moats",
    sql: `comment on column app_public.moats.name is E'@masked\\n\\nWhat it is called.';
      select app_private.make_masked_view('moats')`,
    object: "app_public.moats.name",
    says: /`create function app_public\.moats_name\(app_public\.moats\) …`/,
  },
  {
    rule: "masked-leak",
    table: "nooks",
    sql: `${mask("nooks")};
      create function app_hidden.label_of_nook(r app_public.nooks) returns text language sql stable
        as $$ select 'Nook ' || r.name $$;
      comment on function app_hidden.label_of_nook is 'What stands on it.'; revoke all on function app_hidden.label_of_nook from plat_anonymous;
      create policy labelled on app_public.nooks as restrictive for delete to plat_user using (app_hidden.label_of_nook(nooks) <> '')`,
    object: "app_hidden.label_of_nook(app_public.nooks)",
    says: /Check the permission, as nooks_name does: it reads the masked column app_public\.nooks\.name\./,
  },
  {
    rule: "masked-function",
    table: "nests",
    sql: `comment on column app_public.nests.name is E'@masked\\n\\nWhat it is called.';
      create function app_public.nests_name(r app_public.nests) returns text language sql stable as $$ select r.name $$;
      grant execute on function app_public.nests_name to plat_user, plat_anonymous;
      comment on function app_public.nests_name is 'What it is called.';
      select app_private.make_masked_view('nests')`,
    object: "app_public.nests.name",
    says: /which checks the viewer.*`@writeOnly`/,
  },
  {
    rule: "masked-list",
    table: "namesakes",
    sql: `${mask("namesakes", "@filter\\n")}`,
    object: "app_public.namesakes.name",
    says: /Remove `@filter` from its comment/,
  },
  {
    rule: "masked-list",
    table: "nurseries",
    sql: `${mask("nurseries")};
      comment on table app_public.nurseries is
        E'@portfolio marketing.read\\n@sort NAME name asc\\n@defaultOrder id desc\\n\\nA part of a building.'`,
    object: "app_public.nurseries",
    says: /Remove name from `@sort`/,
  },
  {
    rule: "masked-search",
    table: "nodes",
    sql: `${mask("nodes")}; insert into app_private.searchable_tables (table_name, type, texts) values ('nodes', 'NODE', 'select r.id, r.name')`,
    object: "app_public.nodes.name",
    says: /Remove it from `make_searchable\('nodes', …\)`/,
  },
  {
    rule: "masked-report",
    table: "nets",
    sql: `${mask("nets")};
      select app_private.add_report_column('LEADS', 'net', '(select x.name from app_public.nets x limit 1)', 'text', 'A net.')`,
    object: "app_hidden.report_columns LEADS.net",
    says: /Read app_public\.nets\.name through app_public\.nets_name\./,
  },
  {
    rule: "masked-view",
    table: "nails",
    sql: `${mask("nails")};
      create view app_public.long_nails with (security_invoker = true, security_barrier = true) as select id, name from app_public.nails;
      grant select on app_public.long_nails to plat_user, plat_anonymous;
      comment on view app_public.long_nails is 'A long one.';
      comment on column app_public.long_nails.name is 'What it is called.'`,
    object: "app_public.long_nails",
    says: /Read the masked column app_public\.nails\.name through app_public\.nails_name\./,
  },
  {
    rule: "masked-grant",
    table: "notches",
    sql: `${mask("notches")}; grant select on app_public.notches to plat_user`,
    object: "app_public.notches.name",
    says: /Revoke the grant to plat_user: `select app_private\.make_masked_view\('notches'\);`/,
  },
  {
    rule: "masked-row",
    table: "newels",
    sql: `${mask("newels")};
      create function app_public.projects_newels_of_it(p app_public.projects) returns setof app_public.newels language sql stable
        as $$ select n.* from app_public.newels n where n.project_id = p.id $$;
      grant execute on function app_public.projects_newels_of_it to plat_user, plat_anonymous;
      comment on function app_public.projects_newels_of_it is 'Its newels.'`,
    object: "app_public.projects_newels_of_it(app_public.projects)",
    says: /app_hidden\.masked_newels/,
  },
  {
    rule: "masked-result",
    table: "nibs",
    sql: `${mask("nibs")};
      create function app_public.some_nib() returns app_public.nibs language sql stable security definer set search_path = pg_catalog, pg_temp
        as $$ select n.* from app_public.nibs n where n.organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[]) limit 1 $$;
      grant execute on function app_public.some_nib to plat_user, plat_anonymous;
      comment on function app_public.some_nib is 'A nib.'`,
    object: "app_public.some_nib()",
    says: /`app_hidden\.masked\(…\)`.*app_public\.nibs/,
  },
  {
    rule: "masked-reads",
    table: "naves",
    sql: `${mask("naves")};
      create function app_public.naves_title(r app_public.naves) returns text language sql stable as $$ select app_public.naves_name(r) || '!' $$;
      grant execute on function app_public.naves_title to plat_user, plat_anonymous;
      comment on function app_public.naves_title is 'What stands on it.'`,
    object: "app_public.naves_title(app_public.naves)",
    says: /`@reads name`/,
  },
];
