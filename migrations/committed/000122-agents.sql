--! Previous: sha1:0ffcc7624e1d80a6a625c54cc1c86b6d3cd3a58f
--! Hash: sha1:b6cf7602854e126b79cbf2c805003a686cdd9057
--! Message: agents

select app_private.create_enum('token_audience', 'Where an access token is taken.', array[
  ['API', 'By the API: GraphQL, event streams.'], ['MCP', 'By /mcp, where agents ask and propose.']])
  where to_regtype('app_public.token_audience') is null;
alter table app_public.access_tokens
  add column if not exists audience app_public.token_audience not null default 'API';
update app_public.actor_type_values set description = 'The drafting service, or an agent that acts for a user by /mcp.'
  where value = 'AI';
