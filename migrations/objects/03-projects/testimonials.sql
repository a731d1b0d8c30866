-- Testimonials of buyers about a project, and collections in which an organization presents several projects.

select app_private.make_public_table('project_testimonials', 'project_testimonial', 'marketing.manage', 'testimonials',
  'Testimonials; users outside the team see the published ones.', shown => 'published');

grant insert (project_id, author, author_title, text, rating, source, published_on, published, sequence),
  update (author, author_title, text, rating, source, published_on, published, sequence), delete
  on app_public.project_testimonials to plat_user;

comment on table app_public.project_testimonials is
  E'@defaultOrder sequence asc, id asc\n\nA testimonial about a project.';
comment on column app_public.project_testimonials.author is 'Name of the quoted person.';
comment on column app_public.project_testimonials.author_title is
  'Description of the author, such as "Owner since 2024".';
comment on column app_public.project_testimonials.text is 'The quotation itself.';
comment on column app_public.project_testimonials.rating is 'Rating in stars, from 1 to 5.';
comment on column app_public.project_testimonials.source is 'Source of the testimonial, such as a review site.';
comment on column app_public.project_testimonials.published_on is 'Day on which the author said or published it.';
comment on column app_public.project_testimonials.published is
  E'@filter\n\nWhether everyone who can see the project can see it.';
comment on column app_public.project_testimonials.sequence is 'Position in the list; lowest first.';
comment on constraint project_testimonials_rating_range on app_public.project_testimonials is 'Must be from 1 to 5.';
