-- Values whose descriptions still used other words.
update app_public.appointment_status_values set description = 'Cancelled by either side.'
  where value = 'CANCELLED';
update app_public.open_house_status_values set description = 'Does not take place.' where value = 'CANCELED';
update app_public.phone_call_status_values set description = 'The conversation has begun.' where value = 'IN_PROGRESS';
