/** Mutants that change nothing that anybody could see, each with the reason why. */
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
      /^app_public\.create_project_organization\(.*: if not app_hidden\.organization_can\(project\.organization_id, 'project\.manage'\) → never$|^app_private\.request_export\(.*: perform app_hidden\.require_organization\(organization_id, 'report\.run'\) → nothing$/,
    reason:
      "Whoever has something act in their name is asked for its permissions when its row is written (make_principal). It is asked first, so that who may not is told of that and not of the input.",
  },
  {
    pattern:
      /^app_public\.organization_user_connections policy own_while_refused: using: and second_factor_due_at <= now\(\) → true$/,
    reason: "Whoever is not refused reads their membership as a member.",
  },
];
