/**
 * State machines of records related to leads and buyers: each listed transition succeeds, and all others are refused
 * with the allowed ones.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startWorld, type World } from "../harness/world.ts";
import { createIn } from "../harness/records.ts";
import { createLead } from "../harness/portfolio.ts";

let world: World;
let lead: string;

beforeAll(async () => {
  world = await startWorld();
  lead = (await createLead(world.owen, { projectId: world.project.id, name: "Stella Steps" })).id;
});
afterAll(() => world.stop());

interface Machine {
  table: string;
  /** Creates a record over the API. */
  create: [field: string, input: Record<string, unknown>];
  /** Required fields for a status. */
  needs?: Record<string, Record<string, unknown>>;
  initial: string[];
  /** Manual transitions from each state. */
  steps: Record<string, string[]>;
}

const machines: Record<string, Machine> = {
  Appointment: {
    table: "appointments",
    create: [
      "createAppointment",
      { type: "PHONE", startsAt: "2031-01-01T10:00:00Z", endsAt: "2031-01-01T11:00:00Z" },
    ],
    initial: ["REQUESTED", "SCHEDULED", "CONFIRMED"],
    steps: {
      REQUESTED: ["CANCELLED", "RESCHEDULED", "SCHEDULED"],
      SCHEDULED: ["CANCELLED", "CONFIRMED", "RESCHEDULED"],
      CONFIRMED: ["CANCELLED", "COMPLETED", "NO_SHOW", "RESCHEDULED"],
      COMPLETED: [],
      NO_SHOW: [],
      RESCHEDULED: [],
      CANCELLED: [],
    },
  },
  Agreement: {
    table: "agreements",
    create: ["createAgreement", { type: "PURCHASE", title: "Contract" }],
    needs: { VOIDED: { voidReason: "A mistake." } },
    initial: ["DRAFT", "SENT", "SIGNED", "EXECUTED"],
    steps: {
      DRAFT: ["SENT", "VOIDED"],
      SENT: ["DECLINED", "PARTIALLY_SIGNED", "SIGNED", "VIEWED", "VOIDED"],
      VIEWED: ["DECLINED", "PARTIALLY_SIGNED", "SIGNED", "VOIDED"],
      PARTIALLY_SIGNED: ["DECLINED", "SIGNED", "VOIDED"],
      SIGNED: ["EXECUTED", "VOIDED"],
      EXECUTED: [],
      DECLINED: [],
      EXPIRED: [],
      VOIDED: [],
    },
  },
  Deposit: {
    table: "deposits",
    create: ["createDeposit", { title: "First", amount: 1000 }],
    needs: { PARTIALLY_PAID: { amountPaid: 400 } },
    initial: ["SCHEDULED"],
    steps: {
      SCHEDULED: ["CANCELLED", "INVOICED", "WAIVED"],
      INVOICED: ["CANCELLED", "PROCESSING", "WAIVED"],
      PROCESSING: ["CANCELLED", "PAID", "PARTIALLY_PAID", "WAIVED"],
      PARTIALLY_PAID: ["FORFEITED", "PAID", "REFUNDED", "RELEASED"],
      PAID: ["FORFEITED", "REFUNDED", "RELEASED"],
      RELEASED: [],
      REFUNDED: [],
      FORFEITED: [],
      WAIVED: [],
      CANCELLED: [],
    },
  },
};

describe.each(Object.entries(machines))("%s", (type, { table, create, needs = {}, initial, steps }) => {
  const states = Object.keys(steps);
  const variable = `$input: Update${type}Input!`;
  const update = `mutation (${variable}) { update${type}(input: $input) { status allowedTransitions { to allowed } } }`;

  /** A record in the given state. */
  async function inState(status: string): Promise<string> {
    const id = await createIn(world.owen)(create[0], { leadId: lead, ...create[1] });
    await world.owner.query(
      `begin; set local session_replication_role = replica; update app_public.${table} set status = '${status}'
       ${status === "VOIDED" ? ", void_reason = 'x'" : ""} ${status === "PARTIALLY_PAID" ? ", amount_paid = 300" : ""} ${status === "PAID" ? ", amount_paid = 1000" : ""}
       where id = '${id}'; commit`,
    );
    return id;
  }

  test("is created in an allowed state", async () => {
    const [field, input] = create;
    const [begun, refused]: [string[], string[]] = [[], []];
    for (const status of states) {
      const answer = await world.owen.ask(
        `mutation ($input: Create${type}Input!) { ${field}(input: $input) { status } }`,
        { input: { leadId: lead, ...input, ...(type === "Deposit" ? {} : { status }) } },
      );
      if (answer.errors) refused.push(answer.errors[0]!.extensions.code);
      else begun.push(answer.data[field].status);
    }
    expect([...new Set(begun)].sort()).toEqual([...initial].sort());
    expect(new Set(refused)).toEqual(new Set(type === "Deposit" ? [] : ["INVALID_TRANSITION"]));
  });

  test.each(states)("from %s", async (from) => {
    for (const to of states.filter((state) => state !== from)) {
      const id = await inState(from);
      const input = { id, status: to, ...needs[to] };
      const answer = await world.owen.ask(update, { input });
      const events = await world.owner.query(
        `select changes -> 'status' as change from app_public.events where subject_id = $1 and changes ? 'status'`,
        [id],
      );
      const { code, from: stood, to: wanted, allowedTransitions } = answer.errors?.[0]?.extensions ?? {};
      const outcome = answer.errors
        ? [code, stood, wanted, allowedTransitions, events.rows]
        : [answer.data[`update${type}`].status, events.rows];
      const expected = steps[from]!.includes(to)
        ? [to, [{ change: [from, to] }]]
        : ["INVALID_TRANSITION", from, to, steps[from], []];
      expect([from, to, outcome]).toEqual([from, to, expected]);
    }
  });
});
