--! Previous: sha1:553027f3c7074b4850090d8a852b5ad66d28c300
--! Hash: sha1:356aef7efcf3f56302bc86bf79c82bae91846d4d
--! Message: profiles

-- What people show of themselves, and what an invitation leads to.

alter table app_public.users add column avatar_url app_public.url;
grant update (avatar_url) on app_public.users to plat_user;
comment on column app_public.users.avatar_url is 'Address of a picture of the user, wherever they keep it.';

create function app_public.organization_invites_projects(i app_public.organization_invites) returns setof app_public.projects
language sql stable rows 10 as $$
  select p.* from app_public.projects p where p.organization_id = i.organization_id and p.archived_at is null order by p.updated_at desc, p.id desc
$$;
grant execute on function app_public.organization_invites_projects to plat_user, plat_anonymous;
comment on function app_public.organization_invites_projects is E'@ordered\n\nThe projects that the invited will see, those changed last first.';
