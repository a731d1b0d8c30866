-- Images, drawings and documents of floor plans; images of lots and units.

select app_private.make_file_table('floor_plan_images', 'floor_plan_image', parent => 'floor_plans', list => 'images',
  settable => '{title, sequence}');

comment on table app_public.floor_plan_images is
  E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a floor plan.';

select app_private.make_file_table('floor_plan_elevation_images', 'elevation_image', parent => 'floor_plans',
  list => 'elevation_images',
  settable => '{title, sequence, elevation}');

grant insert (price_delta), update (price_delta) on app_public.floor_plan_elevation_images to plat_user;

comment on table app_public.floor_plan_elevation_images is
  E'@file Image\n'
  '@operationName ElevationImage\n'
  '@defaultOrder sequence asc, id asc\n\n'
  'Street view of a home, in one of the variants of its floor plan.';
comment on column app_public.floor_plan_elevation_images.elevation is 'Name of the variant, such as A.';
comment on column app_public.floor_plan_elevation_images.price_delta is
  'Amount that the variant adds to the price, in the currency of the project; negative if it costs less.';

select app_private.make_file_table('floor_plan_drawings', 'floor_plan_drawing', parent => 'floor_plans',
  list => 'drawings',
  settable => '{title, sequence, level, mirrored}');

comment on table app_public.floor_plan_drawings is
  E'@file Image\n@defaultOrder sequence asc, id asc\n\nAn image that shows the rooms of a floor plan.';
comment on column app_public.floor_plan_drawings.level is 'Floor that the drawing shows; 0 is the ground floor.';
comment on column app_public.floor_plan_drawings.mirrored is 'Whether the drawing shows the mirrored plan.';
comment on constraint floor_plan_drawings_level_range on app_public.floor_plan_drawings is
  'The level must be from -20 to 200.';

select app_private.make_file_table('floor_plan_documents', 'floor_plan_document', parent => 'floor_plans',
  list => 'documents',
  settable => '{title, category, public}');

comment on table app_public.floor_plan_documents is
  E'@file Document\n\nA file attached to a floor plan, such as its specification.';
