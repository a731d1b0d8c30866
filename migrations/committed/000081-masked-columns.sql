--! Previous: sha1:59cb4bbdf203e9aa30ca7d6a8b45d7d865a9e6a9
--! Hash: sha1:943554c48f82575631a46be362dc31479aad5101
--! Message: masked-columns

-- Views that mask columns belong to plat_masker, and stand in these schemas.
grant create on schema app_public, app_hidden to plat_masker;
