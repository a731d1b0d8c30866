/**
 * The players: every kind of viewer of one organization, two owners of others, a user without an organization, and a
 * visitor.
 */
import { demoUser } from "../../src/demo/index.ts";
import type { Person } from "../harness/api.ts";
import type { Payments } from "../harness/payments.ts";
import { programOf } from "../harness/world.ts";
import type { Player } from "./fuzzer.ts";

/** Operations that affiliate an organization with a project of another one; outsiders must remain outside. */
const affiliating = ["acceptProjectOrganizationInvite"];
/** Operations that make the player a member or an owner. */
const joining: ReadonlySet<string> = new Set([
  "createOrganization",
  "acceptOrganizationInvite",
  ...affiliating,
]);

export async function players(world: Payments): Promise<Player[]> {
  const { owen, ada, max, sam, bob, olga, bea, anonymous, harbour, summit } = world;
  const host = await (globalThis.platHost?.() ?? import("../harness/host.ts"));
  const signIn = async (id: string) => {
    // A player who has added a second factor would need its code.
    await world.owner.query("delete from app_private.second_factors where user_id = $1", [id]);
    const { rows } = await world.owner.query<{ token: string; email: string }>(
      `select (app_public.login(i.email, p.password_hash)).token::text, i.email from app_hidden.user_identities i
       join app_private.user_passwords p using (user_id) where user_id = $1`,
      [id],
    );
    return { ...world.person(host.signLoginToken(rows[0]!.token), id), email: rows[0]!.email };
  };
  const { rows } = await world.owner.query<{ id: string; organization: string }>(
    `select c.user_id as id, c.organization_id as organization from app_public.organization_user_connections c
     where c.user_id = app_private.account_named($1) and c.role = 'OWNER'`,
    [demoUser.email],
  );
  const lark = rows[0]!;
  const user = (name: string, person: Person, weight: number, more: Partial<Player> = {}): Player => ({
    name,
    person,
    weight,
    party: "Harbour",
    home: harbour.id,
    without: joining,
    renew: () => signIn(person.id!),
    ...more,
  });
  const reader = async () =>
    programOf(world, await signIn(owen.id!), { scopes: ["lead.read"], organizationId: harbour.id });
  const owner = user("owner", owen, 10, { without: new Set(["createOrganization"]) });
  return [
    owner,
    user("admin", ada, 2),
    user("member", max, 3),
    user("seller", sam, 2),
    user("builder", bob, 1),
    user("buyer", bea, 3),
    { name: "program", person: await reader(), weight: 1, party: "Harbour", home: harbour.id, renew: reader },
    user("newcomer", await world.signUp("Nia Newcomer"), 2, { without: new Set(affiliating) }),
    user("owner elsewhere", olga, 3, { party: "Summit", home: summit.id, without: new Set(affiliating) }),
    user("owner of the demo", await signIn(lark.id), 10, {
      party: "Lark",
      home: lark.organization,
      without: new Set(affiliating),
    }),
    { name: "visitor", person: anonymous, weight: 2, party: "Nobody", home: harbour.id },
  ];
}
