import { graphql } from "relay-runtime";

graphql`
  query operationsLeadsQuery($first: Int!, $after: Cursor, $filter: LeadsFilter) {
    ...operationsLeads @arguments(first: $first, after: $after, filter: $filter)
  }
`;
graphql`
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
graphql`
  fragment operationsLead on Lead @refetchable(queryName: "operationsLeadQuery") {
    id
    name
    company
    project {
      title
    }
  }
`;
graphql`
  mutation operationsUpdateLeadMutation($input: UpdateLeadInput!) {
    updateLead(input: $input) {
      ...operationsLead
    }
  }
`;
graphql`
  mutation operationsCreateLeadMutation($input: CreateLeadInput!) {
    createLead(input: $input) {
      ...operationsLead
    }
  }
`;
graphql`
  mutation operationsDeleteLeadMutation($input: DeleteLeadInput!) {
    deleteLead(input: $input) {
      deletedId @deleteRecord
    }
  }
`;
