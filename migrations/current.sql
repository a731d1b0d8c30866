-- Views that mask columns belong to plat_masker, and stand in these schemas.
grant create on schema app_public, app_hidden to plat_masker;
