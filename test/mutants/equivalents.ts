/** Equivalent mutants: those without any observable change, each with its reason. */
export const equivalents: { pattern: RegExp; reason: string }[] = [
  {
    pattern:
      /^app_public\.(agreements|contacts|deposits|lead_notes|phone_calls|tasks) policy \w+: using: and project_id = ANY \(.*SELECT app_hidden\.viewer_own_projects\('(lead|buyer|sale)\.read'|^app_public\.deposits policy own_reservations_insert: with check: and project_id = ANY \(.*SELECT app_hidden\.viewer_own_projects\('sale\.write'/,
    reason:
      "The assignee is looked up in the lead or purchase, of those in these projects only. The condition comes first, so that of other projects none is looked up.",
  },
  {
    pattern:
      /policy portfolio_and_public_parts: using: or (organization_id = ANY .*viewer_organizations|project_id = ANY .*viewer_projects)\('project\.read'.* → false$/,
    reason:
      "Of a table that outsiders see all rows of, whoever sees the project sees the row. Members are answered without looking the project up.",
  },
  {
    pattern:
      /^app_public\.(workflow_executions|escalation_tickets) policy \w+: using: or (organization|project)_id = ANY .* AND .* → false$/,
    reason: "Whoever sees all leads and purchases sees this one: they are answered without looking it up.",
  },
  {
    pattern: /^app_public\.custom_reports policy managers_update: with check → true$/,
    reason:
      "Without it the condition for the row as it was would hold for the row as it becomes, and nobody could make another's report private. The organization, which it asks about, is no column that anybody may change.",
  },
  {
    pattern:
      /^app_hidden\.(viewer_(holds|signers)|find_viewer_\w+)\((text)?\): or app_public\.current_user_id\(\) IS NULL → false$/,
    reason: "A visitor's id is null, which no row's equals: visitors are answered without looking.",
  },
  {
    pattern:
      /^app_hidden\.viewer_(deal_agents|purchase_leads)\(\): and b\.(agent|lead)_id IS NOT NULL → true$/,
    reason: "A null among ids that policies look for equals none.",
  },
  {
    pattern:
      /^app_public\.create_project_organization\(.*: if not app_hidden\.organization_can\(project\.organization_id, 'project\.manage'\) → never$|^app_private\.request_export\(.*: perform app_hidden\.require_organization\(organization_id, 'report\.run'\) → nothing$|^app_hidden\.begin_integration\(.*: perform app_hidden\.require_organization\(owner_id, 'org\.admin'\) → nothing$/,
    reason:
      "Whoever has something act in their name is asked for its permissions when its row is written (make_principal). It is asked first, so that who may not is told of that and not of the input.",
  },
  {
    pattern:
      /^app_public\.organization_user_connections policy own_while_refused: using: and second_factor_due_at <= now\(\) → true$/,
    reason: "Whoever is not refused reads their membership as a member.",
  },
  {
    pattern:
      /^app_(public|hidden|private)\.(accept_contact_message|begin_lead_email|begin_representative|convert_lead|create_(buyer|lead|offer|personalization|reservation|unit_hold)|delete_(organization_avatar|project_organization)|jobs_organization|may_upload|remind_agreement_signer|require_(import|operator|whole_account)|suggest_lead_email|update_(appointment|buyer|lead|leads|negotiation|personalization|project_organization|unit_hold|workflow)|upsert_leads)\(.*\): perform app_hidden\.require_viewer\(\) → nothing$/,
    reason:
      "Operations begin so. Without it the first function that they call, which writes records or asks for a permission, tells visitors the same (test/schema/visitors.test.ts).",
  },
  {
    pattern:
      /^app_private\.require_member\(.*: perform app_hidden\.require_organization\(organization_id, 'org\.owner'\) → nothing( \(2\))?$/,
    reason:
      "It is asked before the organization is locked, and again once it is, when somebody else may have changed it.",
  },
  {
    pattern: /^app_hidden\.colleague_ids\(\): or app_hidden\.setting\('scopes'\) IS NULL → false$/,
    reason: "Without scopes every permission counts: members are answered without looking any up.",
  },
  {
    pattern:
      /^app_hidden\.(colleague_ids\(\)|find_viewer_(organizations|(own_)?projects)\(text\)): (and NOT \(r\.in_affiliated\)|not r\.in_affiliated) → true$/,
    reason: "No role in an organization has the name of one in a project.",
  },
  {
    pattern:
      /^app_public\.(contact_project\(.*: if project\.id is null|create_unit_hold\(jsonb\): if home\.project_id is not null|delete_lead_source\(.*: if source is null) → never$/,
    reason:
      "The function that is called next refuses the same with the same sentence. It is asked first, before anything else is said of what the viewer does not see.",
  },
  {
    pattern:
      /^app_public\.export_organization\(.*: perform app_hidden\.require_(viewer\(\)|organization\(organization_id, 'org\.owner'\)) → nothing$|^app_private\.(request_export\(.*: perform app_hidden\.require_organization\(organization_id, 'org\.owner'\)|task_named\(text\): perform app_private\.require_operator\(\)) → nothing$/,
    reason:
      "The operation asks for it, and so does the function that it calls, which others may come to call too.",
  },
  {
    pattern: /^app_hidden\.viewer_holds\(\): and h\.deleted_at IS NULL → true$/,
    reason: "The policies of unit_holds ask it too, and no operation deletes a hold.",
  },
  {
    pattern:
      /^app_hidden\.find_viewer_(organizations|(own_)?projects)\(text\): and r\.reach = 'OWN_WHERE_PRIVATE' → true$/,
    reason:
      "Roles in an organization reach ALL or this. Where one reaches ALL, the organization is among those of the viewer, and its projects are not listed.",
  },
  {
    pattern: /^app_public\.signing_requests\(\): perform app_hidden\.require_viewer\(\) → nothing$/,
    reason: "Visitors may not execute it, and sign nothing.",
  },
  {
    pattern: /^grant EXECUTE on function app_hidden\.dry_run_events\(integer\) to plat_anonymous$/,
    reason:
      "What viewers may call of app_hidden is granted to visitors too by default; they are told to sign in before a dry run.",
  },
];
