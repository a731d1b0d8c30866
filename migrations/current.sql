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
