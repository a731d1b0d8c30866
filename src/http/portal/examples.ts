/**
 * Example operations of the reference, which the explorer runs as a user of the demo data. test/browser/portal.test.ts
 * runs each of them and records its response and its effects in docs/examples.json.
 */
export interface Example {
  name: string;
  /** One of the domains of the reference. */
  domain: string;
  title: string;
  /** The operations and types that it shows. */
  about: readonly string[];
  document: string;
  variables?: Readonly<Record<string, unknown>>;
  /** A query that precedes the example, and the paths in its response from which variables get their values. */
  needs?: { query: string; variables: Readonly<Record<string, string>> };
}

/** An old lead, because the workflow of the demo mails new leads, which changes their status. */
const anyLead = {
  query: `{ leads(first: 1, filter: { status: [NEW] }, orderBy: [REGISTERED_AT_ASC]) { id } }`,
  path: "leads.0.id",
};

export const examples: readonly Example[] = [
  {
    name: "PublicProjects",
    domain: "Projects",
    title: "Public projects, for anybody",
    about: ["publicProjects", "Project"],
    document: `query PublicProjects {
  publicProjects(first: 10) {
    id
    title
    status
    city
  }
}`,
  },
  {
    name: "ProjectWithUnits",
    domain: "Projects",
    title: "A project with units for sale",
    about: ["project", "Project"],
    document: `query ProjectWithUnits($id: ID!) {
  project(id: $id) {
    title
    status
    currency
    units(first: 3) {
      title
      status
      price
    }
  }
}`,
    variables: { id: "larkfield-gardens" },
  },
  {
    name: "UnitsForSale",
    domain: "Inventory",
    title: "Units for sale by price",
    about: ["units", "Unit", "UnitsFilter"],
    document: `query UnitsForSale($filter: UnitsFilter!) {
  units(first: 3, filter: $filter) {
    id
    title
    status
    price
    bedrooms
    allowedTransitions {
      to
      allowed
    }
  }
}`,
    variables: { filter: { status: ["AVAILABLE"], price: { max: "900000.00" } } },
  },
  {
    name: "ChangeUnit",
    domain: "Inventory",
    title: "A new price for a unit",
    about: ["updateUnit", "Unit", "UpdateUnitInput"],
    document: `mutation ChangeUnit($input: UpdateUnitInput!) {
  updateUnit(input: $input) {
    title
    price
    version
  }
}`,
    variables: { input: { id: "", price: "612000.00" } },
    needs: {
      query: `{ units(first: 1, filter: { status: [AVAILABLE] }) { id } }`,
      variables: { "input.id": "units.0.id" },
    },
  },
  {
    name: "NewLeads",
    domain: "Leads",
    title: "New leads, page by page",
    about: ["leadsConnection", "Lead"],
    document: `query NewLeads {
  leadsConnection(first: 3, filter: { status: [NEW] }) {
    totalCount
    pageInfo {
      endCursor
      hasNextPage
    }
    edges {
      node {
        id
        name
        status
      }
    }
  }
}`,
  },
  {
    name: "EnterLead",
    domain: "Leads",
    title: "Enter a lead",
    about: ["createLead", "Lead", "CreateLeadInput"],
    document: `mutation EnterLead($input: CreateLeadInput!) {
  createLead(input: $input) {
    id
    name
    status
    phone
  }
}`,
    variables: {
      input: {
        projectId: "larkfield-gardens",
        name: "Bo Larsen",
        email: "bo.larsen@example.com",
        phone: "416 555 0123",
      },
    },
  },
  {
    name: "EnterLeadTwice",
    domain: "Leads",
    title: "Refused: the lead is there already",
    about: ["createLead"],
    document: `mutation EnterLeadTwice($input: CreateLeadInput!) {
  createLead(input: $input) {
    id
  }
}`,
    variables: {
      input: { projectId: "larkfield-gardens", name: "B. Larsen", email: "BO.LARSEN@example.com" },
    },
  },
  {
    name: "NoteOnLead",
    domain: "Leads",
    title: "A note on a lead",
    about: ["createLeadNote", "LeadNote"],
    document: `mutation NoteOnLead($input: CreateLeadNoteInput!) {
  createLeadNote(input: $input) {
    text
    author {
      fullName
    }
  }
}`,
    variables: { input: { leadId: "", text: "Wants to see the garden." } },
    needs: { query: anyLead.query, variables: { "input.leadId": anyLead.path } },
  },
  {
    name: "TaskForLead",
    domain: "Leads",
    title: "A task about a lead",
    about: ["createTask", "Task"],
    document: `mutation TaskForLead($input: CreateTaskInput!) {
  createTask(input: $input) {
    title
    status
  }
}`,
    variables: { input: { leadId: "", title: "Call back" } },
    needs: { query: anyLead.query, variables: { "input.leadId": anyLead.path } },
  },
  {
    name: "ContactLead",
    domain: "Leads",
    title: "A step of the status",
    about: ["updateLead", "Lead", "UpdateLeadInput"],
    document: `mutation ContactLead($input: UpdateLeadInput!) {
  updateLead(input: $input) {
    status
    allowedTransitions {
      to
    }
  }
}`,
    variables: { input: { id: "", status: "CONTACTED" } },
    needs: { query: anyLead.query, variables: { "input.id": anyLead.path } },
  },
  {
    name: "HoldUnit",
    domain: "Deals",
    title: "Hold a unit for somebody",
    about: ["createUnitHold", "UnitHold", "Unit"],
    document: `mutation HoldUnit($input: CreateUnitHoldInput!) {
  createUnitHold(input: $input) {
    id
    expiresAt
    unit {
      title
      status
    }
  }
}`,
    variables: { input: { unitId: "", notes: "Until tomorrow" } },
    needs: {
      query: `{ units(first: 1, filter: { status: [AVAILABLE] }) { id } }`,
      variables: { "input.unitId": "units.0.id" },
    },
  },
  {
    name: "HoldTakenUnit",
    domain: "Deals",
    title: "Refused: the unit is claimed",
    about: ["createUnitHold"],
    document: `mutation HoldTakenUnit($input: CreateUnitHoldInput!) {
  createUnitHold(input: $input) {
    id
  }
}`,
    variables: { input: { unitId: "" } },
    needs: {
      query: `{ units(first: 1, filter: { status: [RESERVED] }) { id } }`,
      variables: { "input.unitId": "units.0.id" },
    },
  },
  {
    name: "ReleaseUnit",
    domain: "Deals",
    title: "Release a unit",
    about: ["deleteUnitHold", "UnitHold"],
    document: `mutation ReleaseUnit($input: DeleteUnitHoldInput!) {
  deleteUnitHold(input: $input) {
    deleted
    deletedType
    deletedId
  }
}`,
    variables: { input: { id: "" } },
    needs: {
      query: `{ units(first: 1, filter: { status: [HELD] }) { activeHold { id } } }`,
      variables: { "input.id": "units.0.activeHold.id" },
    },
  },
  {
    name: "Reservations",
    domain: "Deals",
    title: "Reservations with their units",
    about: ["reservations", "Reservation"],
    document: `query Reservations {
  reservations(first: 3) {
    id
    status
    unit {
      title
      status
    }
  }
}`,
  },
  {
    name: "Offers",
    domain: "Deals",
    title: "Offers",
    about: ["offers", "Offer"],
    document: `query Offers {
  offers(first: 3) {
    id
    status
  }
}`,
  },
  {
    name: "Buyers",
    domain: "Buyers",
    title: "Buyers",
    about: ["buyers", "Buyer"],
    document: `query Buyers {
  buyers(first: 3) {
    id
    status
  }
}`,
  },
  {
    name: "EventsOfOrganization",
    domain: "Webhooks and events",
    title: "What happened last",
    about: ["events", "Event"],
    document: `query EventsOfOrganization($filter: EventsFilter) {
  events(first: 3, filter: $filter) {
    name
    sequence
  }
}`,
    variables: { filter: { names: ["lead.*"] } },
  },
  {
    name: "MyOrganizations",
    domain: "Organizations",
    title: "Where the viewer belongs",
    about: ["viewer", "User", "UserOrganizationConnection"],
    document: `query MyOrganizations {
  viewer {
    fullName
    organizations {
      role
      organization {
        slug
        name
      }
    }
  }
}`,
  },
  {
    name: "Members",
    domain: "Organizations",
    title: "Members of an organization",
    about: ["organization", "Organization"],
    document: `query Members($id: ID!) {
  organization(id: $id) {
    name
    kind
  }
}`,
    variables: { id: "larkfield-homes" },
  },
  {
    name: "SearchEverything",
    domain: "Projects",
    title: "Search",
    about: ["search", "SearchResult"],
    document: `query SearchEverything($query: String!) {
  search(query: $query, first: 3) {
    title
    snippet
  }
}`,
    variables: { query: "larkfield" },
  },
  {
    name: "WrongPassword",
    domain: "Accounts",
    title: "Refused: a wrong password",
    about: ["login"],
    document: `mutation WrongPassword($input: LoginInput!) {
  login(input: $input) {
    token
  }
}`,
    variables: { input: { username: "nobody@plat.example", password: "not this one" } },
  },
];
