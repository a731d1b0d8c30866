import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

const reaches: Record<string, string> = {
  ALL: "all",
  OWN: "own leads",
  OWN_WHERE_PRIVATE: "own where private",
};

/**
 * Who has which permission, as a Markdown table, from the rows that the database decides by.
 * @param inAffiliated false: the roles of members; true: what an organization's part in a project of others gives.
 */
export async function permissionsTable(database: ClientBase, inAffiliated: boolean): Promise<string> {
  const { rows } = await database.query<{ role: string; permission: string; reach: string }>(
    "select role, permission, reach from app_private.role_permissions where in_affiliated = $1 order by permission",
    [inAffiliated],
  );
  const order = [
    ...(inAffiliated
      ? ["SELLER", "AGENCY", "BROKER", "BUILDER", "MARKETER", "LENDER", "TITLE", "VIEWER"]
      : ["OWNER", "ADMIN", "MEMBER"]),
    ...rows.map(({ role }) => role),
  ];
  const roles = [...new Set(order)].filter((role) => rows.some((row) => row.role === role));
  const permissions = [...new Set(rows.map(({ permission }) => permission))];
  return markdownTable(
    ["Permission", ...roles],
    permissions.map((permission) => [
      `\`${permission}\``,
      ...roles.map((role) => {
        const row = rows.find((r) => r.role === role && r.permission === permission);
        return row ? (reaches[row.reach] ?? row.reach) : "–";
      }),
    ]),
  );
}
