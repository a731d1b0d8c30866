select app_private.make_file_table('unit_images', 'unit_image', parent => 'units', list => 'images',
  settable => '{title, sequence, construction_status}');

comment on table app_public.unit_images is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a unit.';
comment on column app_public.unit_images.construction_status is
  'Construction status of the home when the image was taken.';
