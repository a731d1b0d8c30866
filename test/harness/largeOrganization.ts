import { Client } from "pg";
import { loadPortfolios } from "../../bench/data/portfolios.ts";
import { startApi, type Api, type Person } from "./api.ts";

/** An organization with enough rows for realistic query plans, beside another organization. */
export interface LargeOrganization {
  api: Api;
  owner: Person;
  member: Person;
  /** Of an affiliated organization. */
  seller: Person;
  /** Ids of the organizations by name: `large` and `other`. */
  organizations: Map<string, string>;
  /** A project of `large`. */
  project: string;
}

type Size = Parameters<typeof loadPortfolios>[1][number];

/** @param load inserts rows other than leads; `more`: further organizations. */
export async function startLargeOrganization(
  large: Omit<Size, "name">,
  other: (api: Api) => Omit<Size, "name"> | Promise<Omit<Size, "name">>,
  load?: (client: Client, organizations: LargeOrganization["organizations"]) => Promise<unknown>,
  more: Size[] = [],
): Promise<LargeOrganization> {
  const api = await startApi();
  const [owner, member, seller] = (await Promise.all(
    ["Olive Owner", "Mina Member", "Sally Seller"].map(api.signUp),
  )) as [Person, Person, Person];
  const beside = await other(api);
  const client = new Client({ connectionString: api.database.ownerUrl });
  await client.connect();
  try {
    const organizations = await loadPortfolios(client, [
      { name: "large", viewers: { owner: owner.id!, member: member.id!, seller: seller.id! }, ...large },
      { name: "other", ...beside },
      ...more,
    ]);
    await load?.(client, organizations);
    const { rows } = await client.query<{ id: string }>(
      "select id from app_public.projects where organization_id = $1 and slug = 'large-1'",
      [organizations.get("large")],
    );
    return { api, owner, member, seller, organizations, project: rows[0]!.id };
  } finally {
    await client.end();
  }
}
