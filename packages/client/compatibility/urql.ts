import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { Client, fetchExchange, gql } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { buildSchema, introspectionFromSchema } from "graphql";
import { leadQuery } from "@plat/client/documents";
import { typesWithoutId } from "@plat/client/schema";
import { freshName, type Setting } from "./setting.ts";

export default async function urql({ url, token, projectId, schemaFile }: Setting): Promise<string> {
  const schema = introspectionFromSchema(buildSchema(await readFile(schemaFile, "utf8")));
  const warnings: string[] = [];
  const client = new Client({
    url,
    preferGetMethod: false,
    fetchOptions: { headers: { authorization: `Bearer ${token}` } },
    exchanges: [
      cacheExchange({
        schema: schema as never,
        keys: {
          ...Object.fromEntries(typesWithoutId.map((name) => [name, () => null])),
          SearchResult: () => null,
        },
        logger: (_severity, message) => void warnings.push(message),
        updates: {
          Mutation: {
            deleteLead(result: any, _args, cache) {
              cache.invalidate({
                __typename: result.deleteLead.deletedType,
                id: result.deleteLead.deletedId,
              });
            },
          },
        },
      }),
      fetchExchange,
    ],
  });
  const created = await client.mutation(
    gql`
      mutation ($input: CreateLeadInput!) {
        createLead(input: $input) {
          __typename
          id
          name
        }
      }
    `,
    { input: { projectId, name: freshName(), address: { locality: "Toronto", country: "CA" } } },
  );
  assert.equal(created.error, undefined);
  const { id, name } = created.data.createLead;
  // All values of a lead, including those without an id: an address, transitions.
  const first = await client.query<any, any>(String(leadQuery), { id });
  assert.equal(first.error, undefined);
  assert.equal(first.data.lead.address.locality, "Toronto");
  // Earlier queries see a change from the cache, without another request.
  await client.mutation(
    gql`
      mutation ($input: UpdateLeadInput!) {
        updateLead(input: $input) {
          __typename
          id
          company
        }
      }
    `,
    { input: { id, company: "Acme" } },
  );
  const cached = await client.query<any, any>(String(leadQuery), { id }, { requestPolicy: "cache-only" });
  assert.deepEqual([cached.data.lead.name, cached.data.lead.company], [name, "Acme"]);
  const node = await client.query<any, any>(
    gql`
      query ($id: ID!) {
        node(id: $id) {
          __typename
          id
          ... on Lead {
            company
          }
        }
      }
    `,
    { id },
  );
  assert.equal(node.data.node.company, "Acme");
  await client.mutation(
    gql`
      mutation ($id: ID!) {
        deleteLead(input: { id: $id }) {
          id
          deletedId
          deletedType
        }
      }
    `,
    { id },
  );
  const gone = await client.query<any, any>(String(leadQuery), { id }, { requestPolicy: "cache-only" });
  assert.equal(gone.data?.lead ?? null, null);
  const bad = await client.mutation(
    gql`
      mutation ($input: CreateLeadInput!) {
        createLead(input: $input) {
          id
        }
      }
    `,
    { input: { projectId, name: "A", email: "no" } },
  );
  assert.equal(bad.error!.graphQLErrors[0]!.extensions["code"], "BAD_USER_INPUT");
  assert.deepEqual(warnings, []);
  return "queries and mutations, normalized cache with the whole schema without a warning, `node`, invalidation, errors by code";
}
