--! Previous: sha1:10bc186e26bac8061997b7945cadbb7e8b26fabe
--! Hash: sha1:bd88fec23a9d80b576b161cf2a7c2b3df6378796
--! Message: standard-terms-of-errors

update app_private.error_codes set description = 'Too many attempts; wait retryAfterSeconds.'
where code = 'RATE_LIMITED';
