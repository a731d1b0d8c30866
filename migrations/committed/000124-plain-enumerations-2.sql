--! Previous: sha1:476475eec889dd0c665b73eebbaf89627f33d8cb
--! Hash: sha1:85cfb9b6a32ff562735d0b37a84c2dc3d5aba801
--! Message: plain-enumerations-2

-- Values whose descriptions still used other words.
update app_public.appointment_status_values set description = 'Cancelled by either side.'
  where value = 'CANCELLED';
update app_public.open_house_status_values set description = 'Does not take place.' where value = 'CANCELED';
update app_public.phone_call_status_values set description = 'The conversation has begun.' where value = 'IN_PROGRESS';
