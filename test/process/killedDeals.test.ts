/**
 * The service is killed during conversions, refunds and acceptances: each is complete or absent, and a repeated
 * request gets the first response.
 */
import { randomUUID } from "node:crypto";
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { brokenInvariants } from "../../src/doctor/invariants.ts";
import { createIn } from "../harness/records.ts";
import { long } from "../harness/seeds.ts";
import { startService, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { sendRepeatedRequest, type RepeatedRequest } from "../harness/repeatedRequests.ts";
import { startWorld, type World } from "../harness/world.ts";

/** Number of each kind; the long form has more. */
const each = long ? 67 : 24;
/** The key with which the API of the harness signs. */
const jwtKeys = "test:a secret of the tests with at least 32 characters";

let world: World;
let wishes: RepeatedRequest[];

beforeAll(async () => {
  world = await startWorld();
  const rows = async (text: string, values: unknown[] = []): Promise<string[]> =>
    (await world.owner.query<{ id: string }>(text, values)).rows.map((row) => row.id);
  const units = await rows(
    `insert into app_public.units (project_id, title, number, status, price)
     select $1, 'Home ' || n, n, 'AVAILABLE', 400000 + n from generate_series(1, $2::int) n returning id`,
    [world.project.id, 3 * each],
  );
  const leads = await rows(
    `insert into app_public.leads (project_id, name, email) select $1, 'Lead ' || n, 'lead' || n || '@example.com' from generate_series(1, $2::int) n returning id`,
    [world.project.id, 3 * each],
  );
  const make = createIn(world.owen);
  const reserve = (i: number) =>
    make("createReservation", { unitId: units[i], leadId: leads[i], acceptedTerms: true });
  const made = await Promise.all(
    Array.from({ length: each }, async (_, i): Promise<RepeatedRequest[]> => {
      await reserve(3 * i);
      const refunded = await reserve(3 * i + 1);
      const negotiationId = await make("createNegotiation", {
        unitId: units[3 * i + 2],
        leadId: leads[3 * i + 2],
      });
      const offerId = await make("createOffer", { negotiationId, side: "BUYER", price: "390000" });
      return [
        { field: "convertLead", input: { leadId: leads[3 * i] }, key: randomUUID() },
        { field: "updateReservation", input: { id: refunded, status: "REFUNDED" }, key: randomUUID() },
        { field: "createOfferResponse", input: { offerId, action: "ACCEPT" }, key: randomUUID() },
      ];
    }),
  );
  wishes = made.flat();
});
afterAll(() => world.stop());

/** The part of each operation that is in the database: 0 for nothing, 1 for all of it, otherwise a fraction. */
async function effects(): Promise<number[]> {
  const count = async (text: string, id: unknown) =>
    Number((await world.owner.query(text, [id])).rows[0].part);
  return Promise.all(
    wishes.map(({ field, input }) =>
      field === "convertLead"
        ? count(
            `select ((l.status = 'CONVERTED')::int + (r.status = 'CONVERTED')::int + (r.purchase_id is not null)::int
               + (select count(*) from app_public.buyers b where b.lead_id = l.id)
               + (select count(*) from app_hidden.claims c where c.unit_id = r.unit_id and c.kind = 'PURCHASE' and c.released_at is null)
               + (select count(*) from app_public.events e where e.subject_id = l.id and e.changes -> 'status' ->> 1 = 'CONVERTED')) / 6.0 as part
             from app_public.leads l join app_public.reservations r on r.lead_id = l.id where l.id = $1`,
            input.leadId,
          )
        : field === "updateReservation"
          ? count(
              `select ((r.status = 'REFUNDED')::int + (u.status = 'AVAILABLE')::int + (l.status = 'NEW')::int
                 + (not exists (select from app_hidden.claims c where c.unit_id = u.id and c.released_at is null))::int
                 + (select count(*) from app_public.events e where e.subject_id = r.id and e.name = 'reservation.refunded')) / 5.0 as part
               from app_public.reservations r join app_public.units u on u.id = r.unit_id join app_public.leads l on l.id = r.lead_id where r.id = $1`,
              input.id,
            )
          : count(
              `select ((o.status = 'ACCEPTED')::int + (n.status = 'ACCEPTED')::int + (u.status = 'PENDING')::int
                 + (select count(*) from app_public.offer_responses r where r.offer_id = o.id)
                 + (select count(*) from app_public.events e where e.subject_id = o.id and e.name = 'offer.accepted')) / 5.0 as part
               from app_public.offers o join app_public.negotiations n on n.id = o.negotiation_id join app_public.units u on u.id = n.unit_id where o.id = $1`,
              input.offerId,
            ),
    ),
  );
}

test("each is complete or absent, and exists once after it was requested again", async () => {
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: world.database.ownerUrl, DATA_DIR: folder.path, JWT_KEYS: jwtKeys };
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true, maxSockets: 24 });
  const first: string[] = [];
  {
    await using service = await startService({ env, args: ["--api-only"] });
    let answered = 0;
    await Promise.all(
      wishes.map(async (wish, i) => {
        first[i] = await sendRepeatedRequest(service.baseUrl, agent, world.owen, wish);
        if (++answered === each) await service.stop("SIGKILL");
      }),
    );
    await service.exit;
  }
  // The database server completes or rolls back running transactions.
  await until(
    () =>
      world.owner.query(
        "select pid, query from pg_stat_activity where datname = current_database() and usename = 'plat_authenticator' and state <> 'idle' and application_name is distinct from $1",
        ["harness"],
      ),
    ({ rows }) => rows.length === 0,
  );
  expect(first.filter((answer) => answer === "LOST").length).toBeGreaterThan(20);
  expect(first.filter((answer) => answer !== "LOST").length).toBeGreaterThanOrEqual(each);
  const parts = await effects();
  expect(parts.filter((part) => part !== 0 && part !== 1)).toEqual([]);
  expect(first.filter((answer, i) => answer !== "LOST" && parts[i] !== 1)).toEqual([]);
  expect(await brokenInvariants(world.owner)).toEqual({});

  await using service = await startService({ env, args: ["--api-only"] });
  const second = await Promise.all(
    wishes.map((wish) => sendRepeatedRequest(service.baseUrl, agent, world.owen, wish)),
  );
  for (const answer of second) expect(answer).toMatch(/^[0-9a-f-]{36}$/);
  expect(first.filter((answer, i) => answer !== "LOST" && answer !== second[i])).toEqual([]);
  expect(new Set(await effects())).toEqual(new Set([1]));
  expect(await brokenInvariants(world.owner)).toEqual({});
  agent.destroy();
});
