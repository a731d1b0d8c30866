--! Previous: sha1:bde1b4e1f7ec1675b5dcd514cd09720ca9760f19
--! Hash: sha1:59cb4bbdf203e9aa30ca7d6a8b45d7d865a9e6a9
--! Message: unavailable-code

insert into app_private.error_codes (code, description) values
  ('UNAVAILABLE', 'The database cannot be reached, or is overloaded; wait retryAfterSeconds.');
