select app_private.make_file_table('organization_avatars', 'organization_avatar', parent => 'organizations',
  list => 'avatar', only_one => true,
  write_permission => 'org.owner');

comment on table app_public.organization_avatars is E'@file Image\n\nLogo of an organization.';
comment on index app_public.organization_avatars_avatar is
  'Somebody else has just uploaded an image; review it and try again.';
