/**
 * Determines the permissions that an operation requires: those without which it has another outcome for an access
 * token of a user with all permissions. Each is tested with dry runs of a working input, so that any number of tokens
 * can use the same.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { getNamedType, isCompositeType, isObjectType, type GraphQLField } from "graphql";
import type { Person } from "../harness/api.ts";
import type { Payments } from "../harness/payments.ts";
import { mutationOf } from "../harness/records.ts";
import type { Operation, Player } from "./fuzzer.ts";

type Variables = Record<string, unknown>;

/** Required permissions by mutation: several alternatives if they depend on the record or the input. */
export type Requirements = Record<string, string[]>;

const file = resolve(import.meta.dirname, "../../docs/mutations.md");
const line = /^\| `(?<name>\w+)` +\| (?<required>.*?) +\|$/gm;

/** The requirements in the guide. */
export function readRequirements(): Requirements {
  const found = readFileSync(file, "utf8").matchAll(line);
  return Object.fromEntries(
    [...found].map(({ groups: { name, required } = {} }) => [
      name!,
      required!.split(" or ").map((one) => one.replaceAll(/[`,]/g, "")),
    ]),
  );
}

/** Replaces the table of the guide. */
export function writeRequirements(requirements: Requirements): void {
  const shown = (required: string) => required.replaceAll(/\w+\.\w+/g, "`$&`").replaceAll("` `", "`, `");
  const rows = [
    ["Mutation", "Requires"],
    ...Object.entries(requirements)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, required]) => [`\`${name}\``, required.map(shown).join(" or ")]),
  ] as [string, string][];
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) => `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`);
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `${text.slice(0, text.indexOf("| Mutation"))}${lines.join("\n")}\n`);
}

/** The outcome of an input that does not work for a user with all permissions. */
export const refused = "is refused";

/**
 * Mutations that commit data before they call a provider, which a dry run would roll back. Their rows in the guide
 * are written by hand.
 */
const inSeveralTransactions: ReadonlySet<string> = new Set([
  "createOrganizationIntegration",
  "createOrganizationPaymentsRepresentative",
  "createPaymentIntent",
  "createProcessorCharge",
  "createUserIntegration",
  "declineAgreement",
  "refundProcessorCharge",
  "signAgreement",
  "suggestLeadEmail",
]);

/** The requirement of an operation that no access token can execute. */
const session = "a session";
/** The requirement of an operation that visitors can execute. */
const nothing = "nothing";
/** The requirement of an operation that any access token can execute. */
const token = "any token";

/** The document that executes the operation and selects as little as possible. */
function bareDocumentOf(kind: string, field: GraphQLField<unknown, unknown>): string {
  const variables = field.args.map((arg) => `$${arg.name}: ${arg.type}`).join(", ");
  const args = field.args.map((arg) => `${arg.name}: $${arg.name}`).join(", ");
  const head = variables ? `${kind} (${variables})` : kind;
  return `${head} { ${field.name}${args ? `(${args})` : ""} ${selectionOf(field)} }`;
}

/** The selection that shows refused rows, for mutations with a result per row. */
export function selectionOf(field: GraphQLField<unknown, unknown>): string {
  const type = getNamedType(field.type);
  if (!isCompositeType(type)) return "";
  return isObjectType(type) && "refusedCount" in type.getFields()
    ? "{ __typename refusedCount }"
    : "{ __typename }";
}

export class RequirementFinder {
  readonly #world: Payments;
  readonly #permissions: readonly string[];
  readonly #dryRun: { on: boolean };
  /** Mutations whose functions have UUID arguments. */
  readonly #ofIds: ReadonlySet<string>;
  readonly #programs = new Map<string, { id: string; person: Person }>();

  private constructor(
    world: Payments,
    permissions: readonly string[],
    dryRun: { on: boolean },
    ofIds: ReadonlySet<string>,
  ) {
    this.#ofIds = ofIds;
    this.#world = world;
    this.#permissions = permissions;
    this.#dryRun = dryRun;
  }

  static async of(world: Payments): Promise<RequirementFinder> {
    const { rows } = await world.owner.query<{ permission: string }>(
      "select distinct permission from app_private.role_permissions order by 1",
    );
    const { rows: functions } = await world.owner.query<{ name: string }>(
      `select app_hidden.camel(proname) as name from pg_proc where pronamespace = 'app_public'::regnamespace
       and array['uuid', 'uuid[]']::regtype[]::oid[] && proargtypes::oid[]`,
    );
    const host = await (globalThis.platHost?.() ?? import("../harness/host.ts"));
    return new RequirementFinder(
      world,
      rows.map(({ permission }) => permission),
      host.dryRun,
      new Set(functions.map(({ name }) => name)),
    );
  }

  /** The outcome of the operation for a person, if possible in a dry run: "done", or the code of its refusal. */
  async #outcome(person: Person, { kind, field }: Operation, variables: Variables): Promise<string> {
    this.#dryRun.on = !inSeveralTransactions.has(field.name);
    try {
      const ask = () => person.ask(bareDocumentOf(kind, field), variables);
      let { data, errors } = await ask();
      if (errors?.[0]!.extensions.code === "RATE_LIMITED") {
        await this.#world.owner.query("delete from app_private.limit_uses");
        ({ data, errors } = await ask());
      }
      if (errors) return `${errors[0]!.extensions.code} ${errors[0]!.extensions.field ?? ""}`;
      if (data[field.name]?.refusedCount > 0) return "refuses rows";
      return data[field.name] === null ? "null" : "done";
    } finally {
      this.#dryRun.on = false;
    }
  }

  /** An access token of the player, with only these permissions. */
  async #program(player: Player, scopes: readonly string[]): Promise<Person> {
    const key = `${player.person.id} ${player.home}`;
    const known = this.#programs.get(key);
    const { rowCount } = await this.#world.owner.query(
      "update app_public.access_tokens set scopes = $2, expires_at = null where id = $1 and revoked_at is null",
      [known?.id, scopes.length > 0 ? scopes : ["nothing"]],
    );
    if (known && rowCount === 1) return known.person;
    const { createAccessToken } = await player.person.get(mutationOf("createAccessToken", "{ id token }"), {
      input: { name: "Takes" },
    });
    const person = this.#world.person(createAccessToken.token, player.person.id);
    this.#programs.set(key, { id: createAccessToken.id, person });
    return await this.#program(player, scopes);
  }

  async #does(player: Player, operation: Operation, input: Variables, scopes: readonly string[]) {
    return (await this.#outcome(await this.#program(player, scopes), operation, input)) === "done";
  }

  /** The permissions that the operation requires with a minimal version of this input. */
  async find(player: Player, operation: Operation, variables: Variables): Promise<string> {
    const input = await this.#least(player, operation, variables);
    const does = (scopes: readonly string[]) => this.#does(player, operation, input, scopes);
    const visitor = await this.#outcome(this.#world.anonymous, operation, input);
    // The record may be invisible to them; the mutation is not limited to signed-in users.
    if (!isUnauthenticated(visitor)) return nothing;
    if (!(await does(this.#permissions))) return session;
    let taken: readonly string[] = this.#permissions;
    // By bisection: most operations require one or two of thirty permissions.
    for (let size = taken.length >> 1; size >= 1; size >>= 1)
      for (let from = 0; from < taken.length;) {
        const fewer = [...taken.slice(0, from), ...taken.slice(from + size)];
        if (fewer.length < taken.length && (await does(fewer))) taken = fewer;
        else from += size;
      }
    return taken.join(" ") || token;
  }

  /**
   * Executes it with a token that has the listed permissions, and with tokens that lack one of them each.
   * @param listed alternatives of the operation: permissions separated by spaces, or a word for none
   * @returns `refused` if the player does not succeed with the input; the requirement if it is not listed; otherwise
   * undefined
   */
  async differs(
    player: Player,
    operation: Operation,
    variables: Variables,
    listed: readonly string[],
  ): Promise<string | undefined> {
    if (
      !inSeveralTransactions.has(operation.field.name) &&
      !(await this.#works(player, operation, variables))
    )
      return refused;
    const does = (scopes: readonly string[]) => this.#does(player, operation, variables, scopes);
    if (inSeveralTransactions.has(operation.field.name)) {
      for (const one of listed[0] === session ? [] : listed[0]!.split(" "))
        if (await does(this.#permissions.filter((permission) => permission !== one)))
          return `less than ${one}`;
      if (listed[0] !== session) return (await does(listed[0]!.split(" "))) ? undefined : refused;
      if (await does(this.#permissions)) return token;
      return (await this.#works(player, operation, variables)) ? undefined : refused;
    }
    const visitor = await this.#outcome(this.#world.anonymous, operation, variables);
    if (!isUnauthenticated(visitor) && listed.includes(nothing)) return undefined;
    // Visitors are asked to sign in before anything else is checked, but an invalid id never reaches a function with
    // a UUID argument.
    const nowhere = ofNothing(variables, () =>
      this.#ofIds.has(operation.field.name) ? randomUUID() : "nothing",
    );
    if (
      isUnauthenticated(visitor) &&
      !listed.includes(nothing) &&
      !isUnauthenticated(await this.#outcome(this.#world.anonymous, operation, nowhere))
    )
      return "to sign in first";
    if (isUnauthenticated(visitor))
      for (const one of listed.filter((text) => text !== nothing))
        if (await this.#requires(one, does)) return undefined;
    // Optional parts of the input may require more.
    const found = await this.find(player, operation, variables);
    return listed.some((one) => withoutReading(one) === withoutReading(found)) ? undefined : found;
  }

  /** Whether tokens with these permissions succeed, and tokens with fewer do not. */
  async #requires(listed: string, does: (scopes: readonly string[]) => Promise<boolean>): Promise<boolean> {
    if (listed === session) return !(await does(this.#permissions));
    const permissions = listed === token ? [] : listed.split(" ");
    if (!(await does(permissions))) return false;
    for (const one of permissions)
      if (await does(this.#permissions.filter((permission) => permission !== one))) return false;
    return true;
  }

  /** Whether the player succeeds with the input. */
  async #works({ person }: Player, operation: Operation, variables: Variables): Promise<boolean> {
    return (await this.#outcome(person, operation, variables)) === "done";
  }

  /** The input without its optional parts. */
  async #least(player: Player, operation: Operation, variables: Variables): Promise<Variables> {
    let least = variables;
    for (const path of pathsOf(variables)) {
      const fewer = without(least, path);
      if (await this.#works(player, operation, fewer)) least = fewer;
    }
    return least;
  }
}

/** Reading public records and their related records requires no permission. */
const withoutReading = (required: string): string =>
  required
    .split(" ")
    .filter((permission) => !/^org\.member$|\.read$/.test(permission))
    .join(" ");

const ids = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The same input with ids of no record, or with invalid ids. */
const ofNothing = (variables: Variables, id: () => string): Variables =>
  JSON.parse(JSON.stringify(variables).replaceAll(ids, id)) as Variables;

const isUnauthenticated = (outcome: string): boolean => outcome.startsWith("UNAUTHENTICATED");

/** The paths of the arguments and of the fields of the input. */
const pathsOf = (variables: Variables): string[][] =>
  Object.entries(variables).flatMap(([key, value]) =>
    key === "input" && value ? Object.keys(value).map((member) => [key, member]) : [[key]],
  );

function without(variables: Variables, [key, member]: string[]): Variables {
  const { [key!]: value, ...others } = variables;
  if (member === undefined) return others;
  const { [member]: _, ...members } = value as Variables;
  return { ...others, [key!]: members };
}
