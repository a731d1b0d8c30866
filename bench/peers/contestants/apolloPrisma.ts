/**
 * Records by Prisma. Each operation is a transaction that begins with setting the claims, as its documentation
 * describes for row-level security.
 */
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "../generated/client.ts";
import { claimSettings, readToken, settings, type Claims } from "../serve.ts";
import { serveApollo } from "./apolloServer.ts";
import { typeDefs } from "./schema.ts";

const prisma = new PrismaClient({
  adapter: new PrismaPg({
    connectionString: settings.databaseUrl,
    max: settings.poolSize,
    options: "-c jit=off",
  }),
});

interface Context {
  claims: Claims | undefined;
  run<T>(work: (client: PrismaClient) => any): Promise<T>;
}

const context = (claims: Claims | undefined): Context => ({
  claims,
  async run(work) {
    const values = claimSettings(claims);
    const names = Object.keys(values);
    const text = `select ${names.map((name, index) => `set_config('${name}', $${index + 1}, true)`).join(", ")}`;
    const [, found] = await prisma.$transaction([
      prisma.$queryRawUnsafe(text, ...Object.values(values)),
      work(prisma),
    ]);
    return found as any;
  },
});

const isoDay = (value: Date | null) => value?.toISOString().slice(0, 10) ?? null;
const open = { where: { status: { in: ["PENDING", "CONFIRMED"] } } };

const resolvers = {
  Query: {
    viewer: (_: unknown, _args: unknown, { claims, run }: Context) =>
      claims ? run((client) => client.user.findUnique({ where: { id: claims.sub } })) : null,
    lead: (_: unknown, { id }: any, { run }: Context) =>
      run((client) => client.lead.findUnique({ where: { id } })),
    leads: (_: unknown, { filter, first }: any, { run }: Context) =>
      run((client) =>
        client.lead.findMany({
          where: { status: filter?.status?.length === 1 ? filter.status[0] : { in: filter?.status } },
          orderBy: [{ registeredAt: "desc" }, { id: "desc" }],
          take: first,
        }),
      ),
    units: (_: unknown, { filter, first }: any, { run }: Context) =>
      run((client) =>
        client.unit.findMany({
          where: { projectId: filter.projectId },
          orderBy: { id: "asc" },
          take: first,
          include: {
            floorPlan: true,
            lot: true,
            images: { orderBy: { sequence: "asc" } },
            reservations: open,
          },
        }),
      ),
    buyer: (_: unknown, { id }: any, { run }: Context) =>
      run((client) =>
        client.buyer.findUnique({
          where: { id },
          include: {
            project: true,
            unit: { include: { floorPlan: true, lot: true } },
            lead: true,
            assignee: true,
            deposits: { orderBy: { sequence: "asc" } },
          },
        }),
      ),
    publicProjects: (_: unknown, { first }: any, { run }: Context) =>
      run((client) =>
        client.project.findMany({
          where: { visibility: "PUBLIC" },
          orderBy: [{ title: "asc" }, { id: "asc" }],
          take: first,
        }),
      ),
    leadsConnection: () => ({}),
  },
  LeadConnection: {
    totalCount: (_: unknown, _args: unknown, { run }: Context) => run((client) => client.lead.count()),
    groupedAggregates: async (_: unknown, _args: unknown, { run }: Context) => {
      const groups = await run<{ status: string; _count: number }[]>((client) =>
        client.lead.groupBy({ by: ["status"], _count: true }),
      );
      return groups.map(({ status, _count }) => ({ keys: [status], distinctCount: { id: `${_count}` } }));
    },
  },
  Unit: {
    price: ({ price }: any) => price?.toString() ?? null,
    activeReservation: ({ reservations }: any) => reservations?.[0] ?? null,
  },
  Buyer: { price: ({ price }: any) => price.toString() },
  Lead: { registeredAt: ({ registeredAt }: any) => registeredAt.toISOString() },
  Reservation: { expiresAt: ({ expiresAt }: any) => expiresAt?.toISOString() ?? null },
  Deposit: {
    amount: ({ amount }: any) => amount?.toString() ?? null,
    dueAt: ({ dueAt }: any) => isoDay(dueAt),
  },
  Mutation: {
    createLead: (_: unknown, { input: { projectId, name, email } }: any, { run }: Context) =>
      run((client) => client.lead.create({ data: { projectId, name, email } })),
  },
};

await serveApollo({ typeDefs, resolvers }, (authorization) => context(readToken(authorization)));
