--! Previous: sha1:bdf4c5c55681338ba07f4f90c7207383a2a2a780
--! Hash: sha1:a7778b426b21cbbc110699cdb36a7338d15eec91
--! Message: inventory-files

-- Pictures, drawings and documents of floor plans, pictures of lots and units.

create table app_public.floor_plan_images (like app_private.image_record including all);
select app_private.make_file_table('floor_plan_images', 'floor_plan_image', parent => 'floor_plans', list => 'images', settable => '{title, sequence}');
comment on table app_public.floor_plan_images is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a floor plan.';

create table app_public.floor_plan_elevation_images (
  like app_private.image_record including all,
  elevation app_public.short_text not null default 'A',
  price_delta numeric(14, 2)
);
select app_private.make_file_table('floor_plan_elevation_images', 'elevation_image', parent => 'floor_plans', list => 'elevation_images',
  settable => '{title, sequence, elevation}');
grant update (price_delta) on app_public.floor_plan_elevation_images to plat_user;
comment on table app_public.floor_plan_elevation_images is E'@file Image\n@operationName ElevationImage\n@defaultOrder sequence asc, id asc\n\nWhat a home of a floor plan looks like from the street, in one of its variants.';
comment on column app_public.floor_plan_elevation_images.elevation is 'Name of the variant, such as A.';
comment on column app_public.floor_plan_elevation_images.price_delta is 'What the variant adds to the price, in the currency of the project; less than zero where it costs less.';

create table app_public.floor_plan_drawings (
  like app_private.image_record including all,
  level int constraint floor_plan_drawings_level_range check (level between -20 and 200),
  mirrored boolean not null default false
);
comment on constraint floor_plan_drawings_level_range on app_public.floor_plan_drawings is 'Give a level from -20 to 200.';
select app_private.make_file_table('floor_plan_drawings', 'floor_plan_drawing', parent => 'floor_plans', list => 'drawings',
  settable => '{title, sequence, level, mirrored}');
comment on table app_public.floor_plan_drawings is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA drawing of a floor plan.';
comment on column app_public.floor_plan_drawings.level is 'The storey that it shows; 0 is at the ground.';
comment on column app_public.floor_plan_drawings.mirrored is 'Whether it shows the plan mirrored.';

create table app_public.floor_plan_documents (like app_private.document_record including all);
select app_private.make_file_table('floor_plan_documents', 'floor_plan_document', parent => 'floor_plans', list => 'documents',
  settable => '{title, category, public}');
comment on table app_public.floor_plan_documents is E'@file Document\n\nA document of a floor plan.';

create table app_public.lot_images (like app_private.image_record including all);
select app_private.make_file_table('lot_images', 'lot_image', parent => 'lots', list => 'images', settable => '{title, sequence}');
comment on table app_public.lot_images is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a lot.';

create table app_public.unit_images (
  like app_private.image_record including all,
  construction_status app_public.unit_construction_status
);
select app_private.make_file_table('unit_images', 'unit_image', parent => 'units', list => 'images', settable => '{title, sequence, construction_status}');
comment on table app_public.unit_images is E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a unit.';
comment on column app_public.unit_images.construction_status is 'How far the construction was when it was taken.';
