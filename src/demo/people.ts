import { hash } from "@node-rs/argon2";
import { argon2Parameters } from "../operations/inputs/passwords.ts";
import type { Stage } from "./stage.ts";

/** The password of all demo users. It exists only in databases that loaded the demo. */
const password = "demo-password";

/** The first user to sign in as: the owner of the demo's developer. */
export const demoUser = { email: "demo@plat.example", password } as const;

interface Person {
  /** Also the local part of the email address. */
  name: string;
  firstName: string;
  lastName: string;
  title: string;
}

interface Company {
  name: string;
  kind: string;
  description: string;
  phone: string;
  address: Record<string, string>;
  /** The founder is first. */
  members: (Person & { role: "OWNER" | "ADMIN" | "MEMBER" })[];
}

const companies: Record<string, Company> = {
  developer: {
    name: "Larkfield Homes",
    kind: "DEVELOPER",
    description:
      "Builds mid-rise homes and townhomes around Toronto, designed with the people who will live there.",
    phone: "+1 416 555 0100",
    address: {
      thoroughfare: "40 Lark Lane",
      locality: "Toronto",
      administrative_area: "ON",
      postal_code: "M5V 1A1",
      country: "CA",
    },
    members: [
      { name: "demo", firstName: "Dana", lastName: "Reyes", title: "Director of sales", role: "OWNER" },
      { name: "amir", firstName: "Amir", lastName: "Haddad", title: "Sales manager", role: "ADMIN" },
      { name: "mei", firstName: "Mei", lastName: "Tanaka", title: "Sales representative", role: "MEMBER" },
      { name: "jonas", firstName: "Jonas", lastName: "Weber", title: "Sales representative", role: "MEMBER" },
    ],
  },
  agency: {
    name: "Quayside Sales",
    kind: "AGENCY",
    description: "Sells new homes for developers.",
    phone: "+1 416 555 0170",
    address: {
      thoroughfare: "8 Quay Street",
      locality: "Toronto",
      administrative_area: "ON",
      postal_code: "M5J 2T3",
      country: "CA",
    },
    members: [
      { name: "sofia", firstName: "Sofia", lastName: "Rossi", title: "Broker of record", role: "OWNER" },
      { name: "liam", firstName: "Liam", lastName: "O'Brien", title: "Sales agent", role: "MEMBER" },
    ],
  },
};

/** The users that visitors can try: one for each role. */
export const demoSignIn = {
  password,
  people: [
    ...Object.values(companies).flatMap((company) =>
      company.members.map(({ name, firstName, lastName, title }) => ({
        username: `${name}@plat.example`,
        name: `${firstName} ${lastName}`,
        part: `${title}, ${company.name}`,
      })),
    ),
    { username: "laura@plat.example", name: "Laura Bianchi", part: "Buyer of a home" },
  ],
};

/** Accounts, the developer and its sales agency. */
export async function people(stage: Stage): Promise<void> {
  const passwordHash = (stage.passwordHash = await hash(password, argon2Parameters));
  for (const [key, company] of Object.entries(companies)) {
    const [founder] = company.members;
    for (const { name, firstName, lastName } of company.members) {
      const { id } = await stage.as(
        null,
        "select u.id from app_public.create_account($1, $2, $3, $4, $5) u",
        [`${name}@plat.example`, passwordHash, firstName, lastName, name],
      );
      stage.keep(name, id);
      // Nobody reads their mail, so the code cannot be taken from it.
      await stage.asOwner("update app_public.users set email_verified_at = now() where id = $1", [id]);
    }
    const organization = await stage.as(
      founder!.name,
      `select o.id from app_public.create_organization(name => $1, kind => $2, description => $3, phone => $4,
         address => jsonb_populate_record(null::app_public.address, $5), time_zone => 'America/Toronto') o`,
      [company.name, company.kind, company.description, company.phone, company.address],
    );
    stage.keep(key, organization.id);
    await stage.asOwner(
      "insert into app_private.sending_changes (organization_id, mails, messages, reason) values ($1, 10000, 1000, 'The demo.')",
      [organization.id],
    );
    for (const { name, role, title } of company.members) {
      // Members join by invitations sent by mail, which nobody reads in the demo.
      await stage.asOwner(
        `insert into app_public.organization_user_connections (organization_id, user_id, role, title) values ($1, $2, $3, $4)
         on conflict (organization_id, user_id) do update set title = excluded.title`,
        [organization.id, stage.id(name), role, title],
      );
      await stage.as(name, "select u.id from app_public.update_user($1) u", [
        { id: stage.id(name), title, time_zone: "America/Toronto" },
      ]);
    }
  }
}
