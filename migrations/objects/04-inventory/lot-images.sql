select app_private.make_file_table('lot_images', 'lot_image', parent => 'lots', list => 'images',
  settable => '{title, sequence}');

comment on table app_public.lot_images is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a lot.';
