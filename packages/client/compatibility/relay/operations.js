import { graphql } from "relay-runtime";

export const query = graphql`
  query operationsLeadsQuery($first: Int!, $after: Cursor, $filter: LeadsFilter) {
    ...operationsLeads @arguments(first: $first, after: $after, filter: $filter)
  }
`;
export const leads = graphql`
  fragment operationsLeads on Query
  @argumentDefinitions(first: { type: "Int!" }, after: { type: "Cursor" }, filter: { type: "LeadsFilter" })
  @refetchable(queryName: "operationsLeadsPageQuery") {
    leadsConnection(first: $first, after: $after, filter: $filter)
      @connection(key: "operations_leadsConnection") {
      edges {
        node {
          ...operationsLead
        }
      }
    }
  }
`;
export const lead = graphql`
  fragment operationsLead on Lead @refetchable(queryName: "operationsLeadQuery") {
    id
    name
    company
    project {
      title
    }
  }
`;
export const update = graphql`
  mutation operationsUpdateLeadMutation($input: UpdateLeadInput!) {
    updateLead(input: $input) {
      ...operationsLead
    }
  }
`;
export const create = graphql`
  mutation operationsCreateLeadMutation($input: CreateLeadInput!) {
    createLead(input: $input) {
      ...operationsLead
    }
  }
`;
export const remove = graphql`
  mutation operationsDeleteLeadMutation($input: DeleteLeadInput!) {
    deleteLead(input: $input) {
      deletedId @deleteRecord
    }
  }
`;
