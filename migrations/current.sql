insert into app_private.error_codes (code, description) values
  ('UNAVAILABLE', 'The database cannot be reached, or is overloaded; wait retryAfterSeconds.');
