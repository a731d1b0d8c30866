--! Previous: sha1:357b1aefc350f518abde1f165c1310ac76a2cf29
--! Hash: sha1:c1673d55958c81bb42c6562b627c137b94a99257
--! Message: access-explanations

-- Why somebody sees a record, or does not.
select app_private.create_enum('access_reason', 'Why somebody sees a record or does not.', array[
  ['PERMISSION', 'They see it: their role has the permission for all such records.'],
  ['OWN_RECORD', 'They see it: their role has the permission for records that are assigned to them.'],
  ['PERSONAL', 'They see it: it is about them, such as their own purchase.'],
  ['PUBLIC', 'Everybody sees it.'],
  ['NOT_ASSIGNED', 'They do not see it: their role has the permission for records that are assigned to them only.'],
  ['PERMISSION_MISSING', 'They do not see it: none of their roles has the permission.'],
  ['SECOND_FACTOR_MISSING', 'They do not see it: the organization requires a second factor, which they lack.'],
  ['NO_PART', 'They do not see it: neither the organization nor one affiliated with the project has them as a member.']
]);
create type app_public.access_explanation as (
  is_visible boolean, reason app_public.access_reason, roles text[], permissions text[], missing_permissions text[],
  may_update boolean, may_delete boolean, is_field_visible boolean
);
