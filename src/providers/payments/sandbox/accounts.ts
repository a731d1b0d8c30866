/** Accounts of organizations and their people. Complete ones are verified immediately; the address `address_no_match` is not found. */
import { invalid, missing } from "./sandboxErrors.ts";
import type { Store, SandboxRecord } from "./sandboxStore.ts";
import type { DatabaseValue } from "../../../database/databaseValue.ts";

const nothingDue = {
  currently_due: [] as string[],
  past_due: [] as string[],
  eventually_due: [] as string[],
  pending_verification: [] as string[],
  errors: [] as unknown[],
  disabled_reason: null as string | null,
};

/** @throws ApiError `resource_missing` */
export const getAccount = (store: Store, id: string): Promise<SandboxRecord> =>
  store.get("account", id, "account");

/** Creates an account that cannot receive payments until its details are complete. */
export async function createAccount(store: Store, params: DatabaseValue): Promise<SandboxRecord> {
  if (!["custom", "express", "standard"].includes(params.type)) throw invalid("Invalid type.", "type");
  const { type, country = "US", email = null, company = {}, business_profile = {}, metadata = {} } = params;
  const account = store.make("account", "acct", {
    type,
    country,
    email,
    business_type: params.business_type ?? null,
    company,
    business_profile,
    metadata,
    details_submitted: false,
  });
  await store.put(account);
  return judged(store, account);
}

/** An account accepts payments when its representative is verified, and all other people are known. */
async function judged(store: Store, account: SandboxRecord): Promise<SandboxRecord> {
  const people = await store.all("person", { account: account.id });
  const due = people.flatMap(({ id, requirements }) =>
    requirements.currently_due.map((field: string) => `${id}.${field}`),
  );
  const named = people.some(({ relationship }) => relationship.representative);
  if (!named) due.unshift("representative.first_name", "representative.last_name");
  const enabled = due.length === 0;
  const after = await store.put({
    ...account,
    charges_enabled: enabled,
    payouts_enabled: enabled,
    details_submitted: named,
    capabilities: {
      card_payments: enabled ? "active" : "inactive",
      transfers: enabled ? "active" : "inactive",
    },
    requirements: {
      ...nothingDue,
      currently_due: due,
      disabled_reason: enabled ? null : "requirements.past_due",
    },
  });
  if (account.charges_enabled !== undefined) await store.emit("account.updated", after, account.id);
  return after;
}

async function getPerson(store: Store, account: string, id: string): Promise<SandboxRecord> {
  const person = await store.get("person", id, "person");
  if (person.account !== account) throw missing("person", id, "person");
  return person;
}

function withRequirements(person: SandboxRecord): SandboxRecord {
  const { dob, address, relationship } = person;
  const due: string[] = [];
  if (!dob?.year) due.push("dob.day", "dob.month", "dob.year");
  for (const member of ["line1", "city", "postal_code"])
    if (!address?.[member]) due.push(`address.${member}`);
  if (relationship.representative && !person.email) due.push("email");
  const unknown = address?.line1 === "address_no_match";
  if (unknown) due.push("verification.document");
  return {
    ...person,
    requirements: {
      ...nothingDue,
      currently_due: due,
      errors: unknown
        ? [
            {
              code: "verification_failed_address_match",
              requirement: "verification.document",
              reason: "The address could not be verified.",
            },
          ]
        : [],
    },
    verification: { status: due.length === 0 ? "verified" : "unverified" },
  };
}

const flags = (relationship: DatabaseValue = {}) =>
  Object.fromEntries(
    Object.entries(relationship).map(([name, value]) => [
      name,
      value === "true"
        ? true
        : value === "false"
          ? false
          : name === "percent_ownership"
            ? Number(value)
            : value,
    ]),
  );

/** Creates or updates a person of an account. @throws ApiError for a second representative */
export async function savePerson(
  store: Store,
  accountId: string,
  id: string | undefined,
  params: DatabaseValue,
): Promise<SandboxRecord> {
  const account = await getAccount(store, accountId);
  const before = id === undefined ? undefined : await getPerson(store, accountId, id);
  const relationship = { ...before?.relationship, ...flags(params.relationship) };
  if (relationship.representative) {
    const others = await store.all("person", { account: accountId });
    if (others.some((other) => other.relationship.representative && other.id !== id))
      throw invalid("There can only be one representative per account.", "relationship[representative]");
  }
  const base = before ?? store.make("person", "person", { account: accountId });
  const address = { ...before?.address, ...params.address };
  const person = await store.put(
    withRequirements({ ...base, ...params, address, relationship, account: accountId } as SandboxRecord),
  );
  await store.emit(before ? "person.updated" : "person.created", person, accountId);
  await judged(store, account);
  return person;
}

/** Deletes a person, which may make the account incomplete again. */
export async function deletePerson(store: Store, accountId: string, id: string): Promise<object> {
  const account = await getAccount(store, accountId);
  const person = await getPerson(store, accountId, id);
  await store.remove(id);
  await store.emit("person.deleted", person, accountId);
  await judged(store, account);
  return { id, object: "person", deleted: true };
}

/** With its people. No event is sent, because the client closes accounts itself. */
export async function deleteAccount(store: Store, id: string): Promise<object> {
  await getAccount(store, id);
  for (const person of await store.all("person", { account: id })) await store.remove(person.id);
  await store.remove(id);
  return { id, object: "account", deleted: true };
}
