/** Accounts of organizations at Stripe, and their people. */
import type { Stripe } from "stripe";
import type {
  AccountState,
  AddressFacts,
  PaymentProcessor,
  PersonState,
  RepresentativeFacts,
} from "./processor.ts";
import { allPages, callStripe } from "./stripeClient.ts";

/** The missing requirements, without duplicates. */
const dueOf = (
  requirements: { currently_due?: string[] | null; past_due?: string[] | null } | null | undefined,
): string[] => [...new Set([...(requirements?.currently_due ?? []), ...(requirements?.past_due ?? [])])];

/** Real estate agents and managers. */
const merchantCategory = "6513";

function addressOf(address: AddressFacts | null): Stripe.AddressParam | undefined {
  if (!address) return undefined;
  const members: Record<string, string | null | undefined> = {
    line1: address.thoroughfare,
    line2: address.premise,
    city: address.locality,
    state: address.administrative_area,
    postal_code: address.postal_code,
    country: address.country,
  };
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value != null),
  ) as Stripe.AddressParam;
}

function accountState(account: Stripe.Account): AccountState {
  const { requirements } = account;
  const due = dueOf(requirements);
  const reason = requirements?.disabled_reason ?? "";
  const status = reason.startsWith("rejected")
    ? "DISABLED"
    : account.charges_enabled
      ? "ENABLED"
      : due.length === 0 && (reason === "requirements.pending_verification" || reason === "under_review")
        ? "PENDING_VERIFICATION"
        : "ONBOARDING";
  return { id: account.id, status, requirements: due };
}

function personState(person: Stripe.Person): PersonState {
  const due = dueOf(person.requirements);
  const verification = person.verification?.status;
  const status =
    verification === "verified"
      ? "VERIFIED"
      : due.length > 0
        ? "REQUIREMENTS_DUE"
        : verification === "pending"
          ? "PENDING"
          : "UNVERIFIED";
  return { id: person.id, status, requirements: due };
}

function personParams(r: RepresentativeFacts): Stripe.AccountCreatePersonParams {
  const address = addressOf(r.address);
  const [year, month, day] = r.dob?.split("-").map(Number) ?? [];
  return {
    first_name: r.firstName,
    last_name: r.lastName,
    email: r.email,
    ...(r.phone && { phone: r.phone }),
    ...(r.dob && { dob: { day: day!, month: month!, year: year! } }),
    ...(address && { address }),
    relationship: {
      representative: r.kind === "AUTHORIZED_REPRESENTATIVE",
      owner: r.kind === "BENEFICIAL_OWNER" || (r.ownershipPercent ?? 0) >= 25,
      director: r.kind === "DIRECTOR",
      executive: r.kind === "EXECUTIVE",
      ...(r.title && { title: r.title }),
      ...(r.ownershipPercent != null && { percent_ownership: r.ownershipPercent }),
    },
    metadata: { plat_representative: r.id },
  };
}

/** Removes something that may already have been removed. A closed account is unknown to the key. */
const gone = (remove: () => Promise<unknown>): Promise<void> =>
  callStripe(async () => {
    try {
      await remove();
    } catch (error) {
      const { statusCode, code } = error as { statusCode?: number; code?: string };
      if (statusCode !== 404 && code !== "account_invalid") throw error;
    }
  });

/**
 * @param stripe the client, created on first use
 * @param serviceUrl default of an organization without a website
 */
export function stripeAccounts(
  stripe: () => Stripe,
  serviceUrl: string,
): Pick<
  PaymentProcessor,
  "createAccount" | "readAccount" | "submitPerson" | "removePerson" | "closeAccount"
> {
  return {
    createAccount: ({ organizationId, organization }, ip) =>
      callStripe(async () => {
        const { name, email, phone, url, country } = organization;
        const address = addressOf(organization.address);
        // To the minute, so that concurrent calls send the same request.
        const minute = Math.floor(Date.now() / 60_000);
        const account = await stripe().accounts.create(
          {
            type: "custom",
            country,
            ...(email && { email }),
            business_type: "company",
            company: { name, ...(phone && { phone }), ...(address && { address }) },
            business_profile: {
              name,
              mcc: merchantCategory,
              url: url ?? `${serviceUrl}/${organization.slug}`,
              product_description: "Reservations and deposits of new homes.",
            },
            capabilities: { card_payments: { requested: true }, transfers: { requested: true } },
            tos_acceptance: { date: minute * 60, ip: ip ?? "127.0.0.1" },
            metadata: { plat_organization: organizationId },
          },
          { idempotencyKey: `plat_account_${organizationId}_${minute}` },
        );
        return accountState(account);
      }),

    readAccount: (id) =>
      callStripe(async () => {
        const [account, people] = await Promise.all([
          stripe().accounts.retrieve(id),
          allPages(stripe().accounts.listPersons(id, { limit: 100 })),
        ]);
        return { ...accountState(account), people: people.map(personState) };
      }),

    submitPerson: (accountId, representative) =>
      callStripe(async () => {
        const { id, personId, version } = representative;
        const params = personParams(representative);
        const idempotencyKey = `plat_person_${id}_${version}`;
        return personState(
          personId
            ? await stripe().accounts.updatePerson(accountId, personId, params, { idempotencyKey })
            : await stripe().accounts.createPerson(accountId, params, { idempotencyKey }),
        );
      }),

    removePerson: (accountId, personId) => gone(() => stripe().accounts.deletePerson(accountId, personId)),

    closeAccount: (accountId) => gone(() => stripe().accounts.del(accountId)),
  };
}
