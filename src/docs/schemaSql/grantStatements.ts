import type { CatalogObject } from "../../database/catalog.ts";
import { format } from "./sqlLayout.ts";

interface Grant {
  verb: string;
  privilege: string;
  column?: string;
  target: string;
  role: string;
  option: string;
}

const pattern = /^(grant|revoke) ([a-z ]+?)(?: \((.+)\))? on (.+) (?:to|from) (\S+)$/;
const order = [
  "usage",
  "select",
  "insert",
  "update",
  "delete",
  "truncate",
  "references",
  "trigger",
  "maintain",
  "execute",
];

/**
 * The grants on one object in as few statements as possible.
 * @param columns in the order of the table
 */
export function grantStatements(grants: readonly CatalogObject[], columns: readonly string[] = []): string[] {
  const parsed = grants.map(parse);
  return [
    ...Map.groupBy(parsed, ({ verb, target, option }) => `${verb} ${target}${option}`).values(),
  ].flatMap((some) => {
    const { verb, target, option } = some[0]!;
    const whole = some.filter(({ column }) => column === undefined);
    const to = (texts: readonly string[], roles: string) =>
      format(
        `${verb} ${texts.join(", ")} on ${target} ${verb === "grant" ? "to" : "from"} ${roles}${option};`,
      );
    return [
      ...[...byRoles(whole.map(({ privilege, role }) => ({ text: privilege, role })))].map(([roles, texts]) =>
        to(texts, roles),
      ),
      ...[...byRoles(ofColumns(some, columns))].flatMap(([roles, texts]) =>
        texts.map((text) => to([text], roles)),
      ),
    ];
  });
}

/** Privileges that several roles have in common, by these roles. */
function byRoles(held: readonly { text: string; role: string }[]): Map<string, string[]> {
  const byText = Map.groupBy(held, ({ text }) => text);
  const texts = [...byText.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return Map.groupBy(texts, (text) =>
    byText
      .get(text)!
      .map(({ role }) => role)
      .sort()
      .join(", "),
  );
}

/** `update (title, status)` for each privilege and role. */
function ofColumns(grants: readonly Grant[], columns: readonly string[]): { text: string; role: string }[] {
  const some = grants.filter(({ column }) => column !== undefined);
  return [...Map.groupBy(some, ({ privilege, role }) => `${privilege} ${role}`).values()].map((same) => {
    const names = same
      .map(({ column }) => column!)
      .toSorted((a, b) => columns.indexOf(a) - columns.indexOf(b));
    return { text: `${same[0]!.privilege} (${names.join(", ")})`, role: same[0]!.role };
  });
}

const rank = (text: string) => order.indexOf(text.split(" ")[0]!);

function parse({ identity, definition }: CatalogObject): Grant {
  const [, verb, privilege, column, target, role] = pattern.exec(identity)!;
  return {
    verb: verb!,
    privilege: privilege!,
    ...(column !== undefined && { column }),
    target: target!,
    role: role!,
    option: definition.slice(identity.length),
  };
}
