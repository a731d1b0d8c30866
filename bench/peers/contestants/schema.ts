/** A handwritten schema with its resolvers: one statement per list, DataLoader for related records. */
import DataLoader from "dataloader";
import type { Claims } from "../serve.ts";
import { asViewer } from "./database.ts";

export const typeDefs = `
  scalar DateTime
  scalar Date
  scalar Decimal
  enum LeadStatus { NEW CONTACTED COLD WARM HOT LOST UNQUALIFIED }
  enum LeadGroupBy { STATUS }
  input LeadsFilter { status: [LeadStatus!] }
  input UnitsFilter { projectId: ID! }
  input CreateLeadInput { projectId: ID! name: String! email: String }
  type User { id: ID! firstName: String lastName: String email: String }
  type Project { id: ID! title: String! slug: String! status: String! }
  type FloorPlan { id: ID! title: String! bedrooms: Int }
  type Lot { id: ID! number: String! }
  type Image { id: ID! sequence: Int! width: Int height: Int }
  type Reservation { id: ID! number: String! status: String! expiresAt: DateTime }
  type Unit {
    id: ID! title: String! number: String status: String! price: Decimal
    floorPlan: FloorPlan lot: Lot images: [Image!]! activeReservation: Reservation
  }
  type Lead { id: ID! name: String! status: LeadStatus! email: String phone: String registeredAt: DateTime! }
  type Deposit { id: ID! title: String! amount: Decimal status: String! dueAt: Date }
  type Buyer {
    id: ID! firstName: String lastName: String email: String status: String! price: Decimal
    project: Project! unit: Unit lead: Lead assignee: User deposits: [Deposit!]!
  }
  type Distinct { id: String! }
  type LeadAggregates { keys: [String] distinctCount: Distinct }
  type LeadConnection { totalCount: Int! groupedAggregates(groupBy: [LeadGroupBy!]!): [LeadAggregates!] }
  type Query {
    viewer: User
    lead(id: ID!): Lead
    leads(filter: LeadsFilter, first: Int = 100): [Lead!]!
    units(filter: UnitsFilter!, first: Int = 100): [Unit!]!
    buyer(id: ID!): Buyer
    publicProjects(first: Int = 100): [Project!]!
    leadsConnection: LeadConnection
  }
  type Mutation { createLead(input: CreateLeadInput!): Lead }
`;

const columns = {
  users: `id, first_name as "firstName", last_name as "lastName", email`,
  projects: "id, title, slug, status",
  floor_plans: "id, title, bedrooms",
  lots: "id, number",
  leads: `id, name, status, email, phone, registered_at as "registeredAt"`,
  units: `id, title, number, status, price, floor_plan_id as "floorPlanId", lot_id as "lotId"`,
  unit_images: `id, unit_id as "unitId", sequence, width, height`,
  reservations: `id, unit_id as "unitId", number, status, expires_at as "expiresAt"`,
  buyers: `id, first_name as "firstName", last_name as "lastName", email, status, price, project_id as "projectId",
    unit_id as "unitId", lead_id as "leadId", assignee_id as "assigneeId"`,
  deposits: `id, buyer_id as "buyerId", title, amount, status, due_at as "dueAt"`,
} as const;
type Table = keyof typeof columns;

/** The context of a request. */
export interface Context {
  claims: Claims | undefined;
  /** A record by its id. */
  one(table: Table): DataLoader<string, any>;
  /** Records that refer to another one. */
  many(table: Table, column: string, key: string, rest: string): DataLoader<string, any[]>;
}

export function contextOf(claims: Claims | undefined): Context {
  const loaders = new Map<string, DataLoader<string, any>>();
  const kept = (name: string, load: (ids: readonly string[]) => Promise<any[]>) => {
    const loader = loaders.get(name) ?? new DataLoader<string, any>(load);
    loaders.set(name, loader);
    return loader;
  };
  return {
    claims,
    one: (table) =>
      kept(table, async (ids) => {
        const rows = await asViewer<any>(claims, {
          name: `${table} by id`,
          text: `select ${columns[table]} from peers.${table} where id = any ($1)`,
          values: [ids],
        });
        const byId = new Map(rows.map((row) => [row.id, row]));
        return ids.map((id) => byId.get(id) ?? null);
      }),
    many: (table, column, key, rest) =>
      kept(`${table} of`, async (ids) => {
        const rows = await asViewer<any>(claims, {
          name: `${table} of`,
          text: `select ${columns[table]} from peers.${table} where ${column} = any ($1) ${rest}`,
          values: [ids],
        });
        const of = Map.groupBy(rows, (row) => row[key]);
        return ids.map((id) => of.get(id) ?? []);
      }),
  };
}

const belongsTo = (table: Table, key: string) => (row: any, _args: unknown, context: Context) =>
  row[key] === null ? null : context.one(table).load(row[key]);

export const resolvers = {
  DateTime: { serialize: (value: Date) => value.toISOString() },
  Query: {
    viewer: (_: unknown, _args: unknown, context: Context) =>
      context.claims ? context.one("users").load(context.claims.sub) : null,
    lead: async (_: unknown, { id }: any, { claims }: Context) => {
      const [row] = await asViewer(claims, {
        name: "lead",
        text: `select ${columns.leads} from peers.leads where id = $1`,
        values: [id],
      });
      return row ?? null;
    },
    leads: (_: unknown, { filter, first }: any, { claims }: Context) => {
      const statuses: string[] | undefined = filter?.status;
      const order = "order by registered_at desc, id desc limit $1";
      if (!statuses)
        return asViewer(claims, {
          name: "leads",
          text: `select ${columns.leads} from peers.leads ${order}`,
          values: [first],
        });
      return statuses.length === 1
        ? asViewer(claims, {
            name: "leads of a status",
            text: `select ${columns.leads} from peers.leads where status = $2 ${order}`,
            values: [first, statuses[0]],
          })
        : asViewer(claims, {
            name: "leads of statuses",
            text: `select ${columns.leads} from peers.leads where status = any ($2) ${order}`,
            values: [first, statuses],
          });
    },
    units: (_: unknown, { filter, first }: any, { claims }: Context) =>
      asViewer(claims, {
        name: "units",
        text: `select ${columns.units} from peers.units where project_id = $1 order by id limit $2`,
        values: [filter.projectId, first],
      }),
    buyer: async (_: unknown, { id }: any, { claims }: Context) => {
      const [row] = await asViewer(claims, {
        name: "buyer",
        text: `select ${columns.buyers} from peers.buyers where id = $1`,
        values: [id],
      });
      return row ?? null;
    },
    publicProjects: (_: unknown, { first }: any, { claims }: Context) =>
      asViewer(claims, {
        name: "public projects",
        text: `select ${columns.projects} from peers.projects where visibility = 'PUBLIC' order by title, id limit $1`,
        values: [first],
      }),
    leadsConnection: () => ({}),
  },
  LeadConnection: {
    totalCount: async (_: unknown, _args: unknown, { claims }: Context) => {
      const [row] = await asViewer<{ n: string }>(claims, {
        name: "count of leads",
        text: "select count(*) as n from peers.leads",
      });
      return Number(row!.n);
    },
    groupedAggregates: (_: unknown, _args: unknown, { claims }: Context) =>
      asViewer(claims, {
        name: "groups of leads",
        text: `select array[status] as keys, json_build_object('id', count(*)::text) as "distinctCount" from peers.leads group by status`,
      }),
  },
  Unit: {
    floorPlan: belongsTo("floor_plans", "floorPlanId"),
    lot: belongsTo("lots", "lotId"),
    images: ({ id }: any, _args: unknown, context: Context) =>
      context.many("unit_images", "unit_id", "unitId", "order by sequence").load(id),
    activeReservation: async ({ id }: any, _args: unknown, context: Context) => {
      const where = "and status in ('PENDING', 'CONFIRMED')";
      return (await context.many("reservations", "unit_id", "unitId", where).load(id))[0] ?? null;
    },
  },
  Buyer: {
    project: belongsTo("projects", "projectId"),
    unit: belongsTo("units", "unitId"),
    lead: belongsTo("leads", "leadId"),
    assignee: belongsTo("users", "assigneeId"),
    deposits: ({ id }: any, _args: unknown, context: Context) =>
      context.many("deposits", "buyer_id", "buyerId", "order by sequence").load(id),
  },
  Mutation: {
    createLead: async (_: unknown, { input: { projectId, name, email } }: any, { claims }: Context) => {
      const [row] = await asViewer(claims, {
        name: "create lead",
        text: `insert into peers.leads (project_id, name, email) values ($1, $2, $3) returning ${columns.leads}`,
        values: [projectId, name, email],
      });
      return row;
    },
  },
};
