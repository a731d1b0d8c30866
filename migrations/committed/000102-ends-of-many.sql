--! Previous: sha1:dad53623d5f4c805dafbbab3f98b1b5e5486bc7c
--! Hash: sha1:99d2acaee77861968a44871d7d421d98031aa33a
--! Message: ends-of-many

-- What ends by itself can be settled many at a time.

alter table app_private.deadline_kinds add column settle_many text;
