update app_private.error_codes set description = 'Too many attempts; wait retryAfterSeconds.'
where code = 'RATE_LIMITED';
