--! Previous: sha1:b6fab9ea3a13eb57817c25bfc7b3b4679298e4d9
--! Hash: sha1:07879614f3004384c7f350b7898507fec3662d99
--! Message: turns-of-signers

-- What a signer acts on: the type of a value that functions of signing hand on. Types stand in migrations, so that it
-- is there
-- before any function of it is brought into a database of an earlier version.

do $$
begin
  if to_regtype('app_private.turn') is null then
    create type app_private.turn as (
      agreement app_public.agreements, signer app_public.agreement_signers, file app_public.agreement_files
    );
  end if;
end $$;
