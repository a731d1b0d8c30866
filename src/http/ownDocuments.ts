/**
 * The GraphQL documents of the service's own pages, by name. The pages send `portal:NAME` and `jobs:NAME` instead of
 * the text, so they also work if only registered documents are allowed.
 */

const ofType = (depth: number): string =>
  depth === 0 ? "kind name" : `kind name ofType { ${ofType(depth - 1)} }`;
const itsType = `type { ${ofType(5)} }`;
const value = `name description ${itsType} defaultValue isDeprecated deprecationReason`;
const schema = `query Schema { __schema { queryType { name } mutationType { name } subscriptionType { name }
  directives { name description locations args { ${value} } }
  types { kind name description
    fields(includeDeprecated: true) { name description ${itsType} isDeprecated deprecationReason args(includeDeprecated: true) { ${value} } }
    inputFields(includeDeprecated: true) { ${value} }
    enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
    interfaces { ${ofType(3)} } possibleTypes { ${ofType(1)} } } } }`;

const unit = "id number title status price bedrooms baths sqft activeHold { id } activeReservation { id }";

const portal = {
  SignIn: "mutation SignIn($input: LoginInput!) { login(input: $input) { token } }",
  SignOut: "mutation SignOut { logout(input: {}) { id } }",
  Viewer:
    "query Viewer { viewer { id fullName isOperator organizations { role organization { id slug name } } } }",
  PublicProjects: "query PublicProjects { publicProjects { title status city } }",
  Projects: "query Projects { projects(first: 50) { id title status currency } }",
  Floor: `query Floor($projectId: ID!) { units(first: 100, filter: { projectIds: [$projectId] }) { ${unit} }
    leads(first: 50, filter: { projectIds: [$projectId] }) { id name } }`,
  Changed: `query Changed($ids: [ID!]!) { nodes(ids: $ids) { ... on Unit { ${unit} } } }`,
  Hold: "mutation Hold($input: CreateUnitHoldInput!) { createUnitHold(input: $input) { id } }",
  Release: "mutation Release($input: DeleteUnitHoldInput!) { deleteUnitHold(input: $input) { id } }",
  Reserve: "mutation Reserve($input: CreateReservationInput!) { createReservation(input: $input) { id } }",
  Cancel:
    "mutation Cancel($input: UpdateReservationInput!) { updateReservation(input: $input) { id status } }",
  Schema: schema,
};

const jobs = {
  SignIn: "mutation SignIn($input: LoginInput!) { login(input: $input) { token } }",
  Viewer: "query Viewer { viewer { isOperator organizations { role organization { id name } } } }",
  Jobs: `query Jobs($task: String, $state: JobState, $createdBefore: DateTime, $arguments: JSON, $organizationId: ID, $beforeId: String) {
  jobs(task: $task, state: $state, createdBefore: $createdBefore, arguments: $arguments, organizationId: $organizationId, beforeId: $beforeId) {
    id task state attempts maxAttempts runAt lastError arguments requestId } }`,
  JobTasks:
    "query JobTasks { jobTasks { name due scheduled failed oldestDueAt lastScheduledAt pausedAt pauseReason } }",
  pauseTask: "mutation Pause($input: PauseTaskInput!) { pauseTask(input: $input) { name } }",
  resumeTask: "mutation Resume($input: ResumeTaskInput!) { resumeTask(input: $input) { name } }",
  retryJobs: "mutation Retry($input: RetryJobsInput!) { retryJobs(input: $input) { changed more } }",
  discardJobs: "mutation Discard($input: DiscardJobsInput!) { discardJobs(input: $input) { changed more } }",
  rescheduleJobs:
    "mutation Reschedule($input: RescheduleJobsInput!) { rescheduleJobs(input: $input) { changed more } }",
};

const under = (prefix: string, documents: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(documents).map(([name, text]) => [`${prefix}:${name}`, text]);

/** Their texts by id. */
export const ownDocuments: ReadonlyMap<string, string> = new Map([
  ...under("portal", portal),
  ...under("jobs", jobs),
]);
