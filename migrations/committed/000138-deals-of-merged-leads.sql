--! Previous: sha1:d27f6c132780164b105cc5af04f35a0766fd29c1
--! Hash: sha1:1eaaf47cd5a77ba460574e572dd3be16caf0e054
--! Message: deals-of-merged-leads

-- Records of leads that were merged kept the assignee of the lead that is gone.
do $$
declare
  deal_table text;
begin
  perform set_config('plat.service', 'on', true);
  foreach deal_table in array '{buyers,negotiations,personalizations,reservations}'::text[] loop
    execute format('update app_public.%I d set assignee_id = l.assignee_id from app_public.leads l
      where l.id in (select m.into_id from app_private.merged_leads m) and d.lead_id = l.id
        and d.assignee_id is distinct from l.assignee_id and d.deleted_at is null and l.deleted_at is null',
      deal_table);
  end loop;
end $$;
