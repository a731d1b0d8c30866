-- What ends by itself can be settled many at a time.

alter table app_private.deadline_kinds add column settle_many text;
