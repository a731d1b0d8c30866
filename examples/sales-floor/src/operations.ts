/**
 * The operations of this application. Each document selects exactly the fields that its part of the screen
 * shows.
 */
import type { ResultOf } from "gql.tada";
import { graphql } from "./graphql.ts";

export const login = graphql(`
  mutation Login($input: LoginInput!) {
    login(input: $input) {
      token
    }
  }
`);

export const logout = graphql(`
  mutation Logout($input: LogoutInput!) {
    logout(input: $input) {
      id
    }
  }
`);

const projectFragment = graphql(`
  fragment Project on Project {
    id
    title
    status
    organizationId
  }
`);
export type Project = ResultOf<typeof projectFragment>;

/** Members see the projects of their organizations; buyers and visitors see public projects. */
export const projectsQuery = graphql(
  `
    query Projects {
      viewer {
        id
        fullName
      }
      projects {
        ...Project
      }
      publicProjects {
        ...Project
      }
    }
  `,
  [projectFragment],
);

const unitFragment = graphql(`
  fragment Unit on Unit {
    id
    title
    status
    price
    currency
    bedrooms
    baths
    sqft
    activeHold {
      id
      user {
        id
        fullName
      }
    }
    activeReservation {
      id
      status
      lead {
        id
        name
      }
      feeDeposit {
        id
        amountDue
        status
      }
    }
  }
`);
export type Unit = ResultOf<typeof unitFragment>;

/**
 * What the viewer may do in a project; it determines which buttons are shown. The service checks the
 * permission again for each operation.
 */
export const permissionsQuery = graphql(`
  query Permissions($projectId: ID!) {
    viewer {
      id
      permissions(projectId: $projectId)
    }
  }
`);

export const unitsQuery = graphql(
  `
    query Units($projectId: ID!, $first: Int, $after: Cursor) {
      unitsConnection(filter: { projectIds: [$projectId] }, first: $first, after: $after) {
        nodes {
          ...Unit
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  `,
  [unitFragment],
);

export const changedUnitsQuery = graphql(
  `
    query ChangedUnits($ids: [ID!]!) {
      nodes(ids: $ids) {
        ...Unit
      }
    }
  `,
  [unitFragment],
);

export const leadsQuery = graphql(`
  query Leads($projectId: ID!) {
    leadsConnection(filter: { projectIds: [$projectId], status: [NEW, CONTACTED, WARM, HOT] }, first: 50) {
      nodes {
        id
        name
      }
    }
  }
`);

export const holdUnit = graphql(`
  mutation HoldUnit($input: CreateUnitHoldInput!) {
    createUnitHold(input: $input) {
      id
    }
  }
`);

export const releaseUnit = graphql(`
  mutation ReleaseUnit($input: DeleteUnitHoldInput!) {
    deleteUnitHold(input: $input) {
      deletedId
    }
  }
`);

export const reserveUnit = graphql(`
  mutation ReserveUnit($input: CreateReservationInput!) {
    createReservation(input: $input) {
      id
    }
  }
`);

export const addCard = graphql(`
  mutation AddCard($input: CreateProcessorCardInput!) {
    createProcessorCard(input: $input) {
      id
    }
  }
`);

export const pay = graphql(`
  mutation Pay($input: CreatePaymentIntentInput!) {
    createPaymentIntent(input: $input) {
      id
      status
      nextActionUrl
    }
  }
`);
