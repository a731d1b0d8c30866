import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

const reaches: Record<string, string> = {
  ALL: "all",
  OWN: "own leads",
  OWN_WHERE_PRIVATE: "own where private",
};

/**
 * Permissions by role as a Markdown table, from the rows that the database applies.
 * @param inAffiliated false for the roles of members; true for the roles of an organization in projects of others
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
