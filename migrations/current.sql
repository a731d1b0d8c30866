
update app_public.step_run_status_values set description = 'Omitted, since the step did not apply.'
  where value = 'SKIPPED';
