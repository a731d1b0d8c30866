/**
 * The ceiling: no GraphQL, but SQL that generates the JSON of the response, in one round trip with the settings of
 * the viewer. Work that only the service supports calls the same functions of the database.
 */
import { createServer } from "node:https";
import { makePool } from "../../src/database/pool.ts";
import { Session } from "../../src/database/session.ts";
import { makeSetter } from "../../src/database/serverSettings.ts";
import { claimSettings, listen, readToken, settings } from "./serve.ts";
import type { GraphqlRequest } from "./works.ts";

const lead = `'id', id, 'name', name, 'status', status, 'email', email`;
const statements: Record<string, { text: string; values?: (variables: any) => unknown[] }> = {
  Viewer: {
    text: `select json_build_object('viewer', (select json_build_object('id', id, 'firstName', first_name, 'lastName', last_name, 'email', email)
      from peers.users where id = peers.user_id()))::text`,
  },
  Lead: {
    text: `select json_build_object('lead', (select json_build_object(${lead}, 'phone', phone, 'registeredAt', registered_at)
      from peers.leads where id = $1))::text`,
    values: ({ id }) => [id],
  },
  Leads: {
    text: `select json_build_object('leads', (select json_agg(json_build_object(${lead}, 'registeredAt', registered_at)) from (
      select * from peers.leads where status = $1 order by registered_at desc, id desc limit 50) l))::text`,
    values: ({ status }) => [status[0]],
  },
  Units: {
    text: `select json_build_object('units', (select json_agg(json_build_object('id', id, 'title', title, 'number', number, 'status', status, 'price', price::text,
        'floorPlan', (select json_build_object('id', id, 'title', title, 'bedrooms', bedrooms) from peers.floor_plans where id = u.floor_plan_id),
        'lot', (select json_build_object('id', id, 'number', number) from peers.lots where id = u.lot_id),
        'images', (select coalesce(json_agg(json_build_object('id', id, 'sequence', sequence, 'width', width, 'height', height) order by sequence), '[]')
          from peers.unit_images where unit_id = u.id),
        'activeReservation', (select json_build_object('id', id, 'number', number, 'status', status, 'expiresAt', expires_at)
          from peers.reservations where unit_id = u.id and status in ('PENDING', 'CONFIRMED')))) from (
      select * from peers.units where project_id = $1 order by id limit 50) u))::text`,
    values: ({ projectId }) => [projectId],
  },
  Buyer: {
    text: `select json_build_object('buyer', (select json_build_object('id', id, 'firstName', first_name, 'lastName', last_name, 'email', email,
        'status', status, 'price', price::text,
        'project', (select json_build_object('id', id, 'title', title, 'status', status) from peers.projects where id = b.project_id),
        'unit', (select json_build_object('id', id, 'title', title, 'number', number,
          'floorPlan', (select json_build_object('id', id, 'title', title) from peers.floor_plans where id = u.floor_plan_id),
          'lot', (select json_build_object('id', id, 'number', number) from peers.lots where id = u.lot_id)) from peers.units u where id = b.unit_id),
        'lead', (select json_build_object('id', id, 'name', name, 'status', status) from peers.leads where id = b.lead_id),
        'assignee', (select json_build_object('id', id, 'firstName', first_name, 'lastName', last_name) from peers.users where id = b.assignee_id),
        'deposits', (select coalesce(json_agg(json_build_object('id', id, 'title', title, 'amount', amount::text, 'status', status, 'dueAt', due_at)
          order by sequence), '[]') from peers.deposits where buyer_id = b.id))
      from peers.buyers b where id = $1))::text`,
    values: ({ id }) => [id],
  },
  PublicProjects: {
    text: `select json_build_object('publicProjects', (select json_agg(json_build_object('id', id, 'title', title, 'slug', slug, 'status', status)) from (
      select * from peers.projects where visibility = 'PUBLIC' order by title, id limit 50) p))::text`,
  },
  Search: {
    text: `select json_build_object('search', (select json_agg(json_build_object('id', id, 'type', type, 'title', title, 'subtitle', subtitle))
      from app_public.search($1, amount => 10)))::text`,
    values: ({ query }) => [query],
  },
  CreateLead: {
    text: `select json_build_object('createLead', json_build_object('id', l.id, 'name', l.name, 'status', l.status))::text
      from app_public.create_lead($1) l`,
    values: ({ input: { projectId, name, email } }) => [
      JSON.stringify({ project_id: projectId, name, email }),
    ],
  },
  CreateReservation: {
    text: `select json_build_object('createReservation', json_build_object('id', r.id, 'number', r.number, 'status', r.status))::text
      from app_public.create_reservation($1) r`,
    values: ({ input: { unitId } }) => [JSON.stringify({ unit_id: unitId, accepted_terms: true })],
  },
  RefundReservation: {
    text: `select json_build_object('updateReservation', json_build_object('id', r.id, 'status', r.status))::text
      from app_public.update_reservation($1) r`,
    values: ({ input }) => [JSON.stringify(input)],
  },
  Groups: {
    text: `select json_build_object('leadsConnection', (select json_build_object('totalCount', sum(amount), 'groupedAggregates',
      json_agg(json_build_object('keys', json_build_array(status), 'distinctCount', json_build_object('id', amount::text)))) from (
      select status, count(*) as amount from peers.leads group by status) g))::text`,
  },
};

const pool = makePool({ connectionString: settings.databaseUrl, max: settings.poolSize });

async function answer(asked: GraphqlRequest, authorization: string | undefined): Promise<string> {
  const setter = makeSetter(claimSettings(readToken(authorization)))!;
  const { text, values } = statements[asked.operationName]!;
  const connection = await pool.connect();
  const session = Session.of(connection, 100);
  try {
    const { rows } = await session.send(
      [
        { ...setter, key: setter.text },
        { text, values: values?.(asked.variables), key: `${setter.values[0]} ${asked.operationName}` },
      ],
      true,
    );
    return `{"data":${(rows as string[][])[0]![0]}}`;
  } finally {
    connection.release(!session.reusable);
  }
}

await listen(
  createServer(settings.tls, (request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", async () => {
      try {
        const asked = JSON.parse(Buffer.concat(parts).toString()) as GraphqlRequest;
        const text = await answer(asked, request.headers.authorization);
        response.writeHead(200, {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
        });
        response.end(text);
      } catch (error) {
        response.writeHead(500).end(JSON.stringify({ errors: [{ message: (error as Error).message }] }));
      }
    });
  }),
);
