import type { Api } from "./api.ts";

/** Makes a purchase without a home, past its operations, and gives its id; `columns` as the table has them. */
export async function createBuyer(
  api: Pick<Api, "owner">,
  project: { id: string },
  columns: Record<string, unknown> = {},
): Promise<string> {
  await api.owner.query("grant select on app_public.buyers, app_public.reservations to plat_user");
  const values = { first_name: "Bea", last_name: "Buyer", price: "400000.00", ...columns };
  const names = Object.keys(values);
  const { rows } = await api.owner.query<{ id: string }>(
    `insert into app_public.buyers (project_id, organization_id, ${names.join(", ")})
     select p.id, p.organization_id, ${names.map((_, i) => `$${i + 2}`).join(", ")} from app_public.projects p where p.id = $1
     returning id`,
    [project.id, ...Object.values(values)],
  );
  return rows[0]!.id;
}
