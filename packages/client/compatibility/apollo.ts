import assert from "node:assert/strict";
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
  ServerError,
} from "@apollo/client";
import UploadHttpLink from "apollo-upload-client/UploadHttpLink.mjs";
import { leadsConnectionQuery } from "@plat/client/documents";
import { possibleTypes } from "@plat/client/schema";
import { freshName, type Setting } from "./setting.ts";

const cacheOf = () =>
  new InMemoryCache({ possibleTypes, typePolicies: { SearchResult: { keyFields: false } } });

export default async function apollo({ url, token, projectId }: Setting): Promise<string> {
  const cache = cacheOf();
  const replayed: (string | null)[] = [];
  const headers = { authorization: `Bearer ${token}` };
  const watched: typeof fetch = async (to, init) => {
    const response = await fetch(to, init);
    replayed.push(response.headers.get("idempotency-replayed"));
    return response;
  };
  const client = new ApolloClient({
    cache,
    link: new HttpLink({ uri: url, fetch: watched, headers }),
    clientAwareness: { name: "compatibility", version: "1" },
  });
  // A typed document of the package, parsed, can be used as a query.
  const query = gql(String(leadsConnectionQuery));
  const before = await client.query<any>({
    query,
    variables: { first: 5, filter: { projectIds: [projectId] } },
  });
  assert.ok(before.data.leadsConnection.nodes.length > 0);

  const mutation = gql`
    mutation ($input: CreateLeadInput!) {
      createLead(input: $input) {
        id
        name
        status
      }
    }
  `;
  const variables = { input: { projectId, name: freshName() } };
  const context = { headers: { "idempotency-key": crypto.randomUUID() } };
  const created = await client.mutate<any>({ mutation, variables, context });
  const again = await client.mutate<any>({ mutation, variables, context });
  assert.deepEqual(again.data, created.data);
  assert.equal(replayed.at(-1), "true");
  const { id } = created.data.createLead;

  // Found by node(id:), and cached under the same key as by the mutation.
  const node = gql`
    query ($id: ID!) {
      node(id: $id) {
        id
        ... on Lead {
          name
          company
        }
      }
    }
  `;
  assert.equal(
    (await client.query<any>({ query: node, variables: { id } })).data.node.name,
    variables.input.name,
  );
  const key = cache.identify({ __typename: "Lead", id })!;
  assert.ok(key in cache.extract());
  const deletion = gql`
    mutation ($id: ID!) {
      deleteLead(input: { id: $id }) {
        id
        deletedId
        deletedType
      }
    }
  `;
  await client.mutate<any>({
    mutation: deletion,
    variables: { id },
    update(store, { data }) {
      const { deletedId, deletedType } = data.deleteLead;
      store.evict({ id: store.identify({ __typename: deletedType, id: deletedId })! });
    },
  });
  assert.ok(!(key in cache.extract()));

  const bad = await client
    .mutate<any>({ mutation, variables: { input: { projectId, name: "A", email: "no" } } })
    .catch((error) => error);
  assert.ok(CombinedGraphQLErrors.is(bad));
  assert.equal(bad.errors[0]!.extensions!["code"], "BAD_USER_INPUT");
  const stranger = new ApolloClient({
    cache: cacheOf(),
    link: new HttpLink({ uri: url, headers: { authorization: "Bearer no.such.token" } }),
  });
  const refused = await stranger
    .query({
      query: gql`
        {
          viewer {
            id
          }
        }
      `,
    })
    .catch((error) => error);
  // The media type shows that a 401 is a GraphQL response, so its code is available.
  assert.ok(CombinedGraphQLErrors.is(refused) || ServerError.is(refused));
  assert.ok(
    CombinedGraphQLErrors.is(refused) && refused.errors[0]!.extensions!["code"] === "UNAUTHENTICATED",
  );

  const uploading = new ApolloClient({
    cache: cacheOf(),
    link: ApolloLink.from([
      new UploadHttpLink({ uri: url, headers: { ...headers, "GraphQL-Preflight": "1" } }),
    ]),
  });
  const { data } = await uploading.mutate<any>({
    mutation: gql`
      mutation ($input: UploadProjectImageInput!) {
        uploadProjectImage(input: $input) {
          id
          filename
        }
      }
    `,
    variables: {
      input: { projectId, alt: "A dot", file: new File([dot], "dot.png", { type: "image/png" }) },
    },
  });
  assert.equal(data.uploadProjectImage.filename, "dot.png");
  client.stop();
  stranger.stop();
  uploading.stop();
  return "queries, mutations with idempotency keys, cache by type and id, `node`, eviction, errors by code, uploads";
}

/** A PNG of one pixel. */
const dot = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
