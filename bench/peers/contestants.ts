/** The contestants, and how each is started. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { LoginTokenKey } from "../../src/auth/loginToken.ts";
import { removeDataDir } from "../../src/database/dataDirs.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { testCertificate } from "../../test/harness/certificate.ts";
import { killChild, startChild } from "../../test/harness/child.ts";
import { startScript } from "../../test/harness/service.ts";
import { signToken } from "./serve.ts";
import type { Viewer } from "./data.ts";
import { smoke } from "../data/size.ts";
import { POOL_SIZE } from "./sizes.ts";

/** A running server. */
export interface Running {
  port: number;
  pid: number;
  /** A token of a viewer for this server. */
  token(viewer: Viewer): string;
  stop(): Promise<void>;
}

export interface Contestant {
  name: string;
  /** @param settings of the service, for contestants that use them */
  start(
    database: { ownerUrl: string; authenticatorUrl: string },
    settings?: NodeJS.ProcessEnv,
  ): Promise<Running>;
  /**
   * Documents for servers whose schema is derived from the tables. Default: the document of the work; null if the
   * work is not supported.
   */
  documents?: Readonly<Record<string, string | null>>;
  /** Whether its documents are registered, and requested by their ids. */
  isRegistered?: boolean;
  /** Variables, if they differ. */
  variables?: Readonly<Record<string, (given: any, viewer: Viewer) => Record<string, unknown>>>;
}

/** Unsupported work of contestants with a handwritten schema. */
const lacking = { Search: null, CreateReservation: null };
const repository = join(import.meta.dirname, "../..");
const kit = join(import.meta.dirname, "node_modules");
const secret = "the-secret-of-the-benchmark-with-32-characters";
export const keys: readonly LoginTokenKey[] = [{ kid: "bench", secret }];

/** The service, in a process like `npm start -- --api-only`. */
const plat = (env: NodeJS.ProcessEnv = {}): Contestant["start"] => {
  return async ({ ownerUrl, authenticatorUrl }, settings) => {
    const dataDir = await scratchFolder("peers");
    const start = startScript(repository);
    const child = startChild([...start.options, join(repository, "src/server.ts"), "--api-only"], {
      cwd: repository,
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...start.env,
        PATH: process.env.PATH,
        GRAPHILE_ENV: "production",
        NODE_ENV: "test",
        PORT: "0",
        MONITORING: "off",
        DATA_DIR: dataDir,
        DATABASE_URL: ownerUrl,
        AUTHENTICATOR_URL: authenticatorUrl,
        JWT_KEYS: `bench:${secret}`,
        SECRET_KEYS: `bench:${secret}`,
        POOL_SIZE: `${POOL_SIZE}`,
        ...env,
        ...settings,
      },
    });
    let said = "";
    const port = await new Promise<number>((found, fail) => {
      child.stdout!.setEncoding("utf8").on("data", (text: string) => {
        if (said.length > 1_000_000) return;
        said += text;
        const line = said.split("\n").find((one) => one.includes('"msg":"Plat is ready."'));
        if (!line) return;
        found(Number(new URL((JSON.parse(line) as { address: string }).address).port));
        said = " ".repeat(1_000_001);
      });
      child.once("exit", (code) => fail(new Error(`The service ended with ${code}: ${said}`)));
    });
    return {
      port,
      pid: child.pid!,
      token: ({ token }) => token,
      stop: async () => {
        await killChild(child);
        await removeDataDir(dataDir);
      },
    };
  };
};

/** A server by its path from this folder. */
export const server = (file: string): Contestant["start"] => {
  return async ({ authenticatorUrl }) => {
    const { cert, key } = await testCertificate();
    const child = startChild([join(import.meta.dirname, file)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: "production",
        GRAPHILE_ENV: "production",
        PEERS_DATABASE_URL: authenticatorUrl,
        PEERS_CERT: cert,
        PEERS_KEY: key,
        PEERS_SECRET: secret,
        PEERS_POOL_SIZE: `${POOL_SIZE}`,
      },
    });
    const port = await new Promise<number>((found, fail) => {
      child.once("message", (message: { port: number }) => found(message.port));
      child.once("exit", (code) => fail(new Error(`${file} ended with ${code}`)));
    });
    const exp = Math.floor(Date.now() / 1000) + 86_400;
    return {
      port,
      pid: child.pid!,
      token: ({ userId, organizationId }) => signToken(secret, { sub: userId, org: organizationId, exp }),
      stop: () => killChild(child),
    };
  };
};

/** All contestants; those that need additional packages only if these are installed. */
export function contestants(only: readonly string[] = []): Contestant[] {
  const own: Contestant[] = [
    { name: "Ceiling", start: server("ceiling.ts") },
    { name: "Plat", start: plat() },
    { name: "Plat by document id", start: plat(), isRegistered: true },
  ];
  const others: Contestant[] =
    !smoke && existsSync(kit)
      ? [
          { name: "Mercurius + JIT", start: server("contestants/mercurius.ts"), documents: lacking },
          { name: "Yoga", start: server("contestants/yoga.ts"), documents: lacking },
          { name: "Apollo", start: server("contestants/apollo.ts"), documents: lacking },
          { name: "Apollo + Prisma", start: server("contestants/apolloPrisma.ts"), documents: lacking },
          { name: "PostGraphile V4", start: server("postgraphile4/server.ts"), ...fromTables("V4") },
          {
            name: "PostGraphile V5 stock",
            start: server("contestants/postgraphile5.ts"),
            ...fromTables("V5"),
          },
        ]
      : [];
  return [...own, ...others].filter(({ name }) => only.length === 0 || only.includes(name));
}

/** Documents for schemas that are derived from the tables. */
function fromTables(version: "V4" | "V5"): Pick<Contestant, "documents" | "variables"> {
  const id = version === "V5" ? "rowId" : "id";
  const by = version === "V5" ? "ByRowId" : "ById";
  return {
    documents: {
      ...lacking,
      Viewer: `query Viewer($id: UUID!) { viewer: user${by}(${id}: $id) { ${id} firstName lastName email } }`,
      Lead: `query Lead($id: UUID!) { lead${by}(${id}: $id) { ${id} name status email phone registeredAt } }`,
      Leads: `query Leads($status: String!) { allLeads(condition: { status: $status }, first: 50, orderBy: [REGISTERED_AT_DESC, ${version === "V5" ? "ROW_ID" : "ID"}_DESC]) {
        nodes { ${id} name status email registeredAt } } }`,
      Units: `query Units($projectId: UUID!) { allUnits(condition: { projectId: $projectId }, first: 50, orderBy: [PRIMARY_KEY_ASC]) { nodes {
        ${id} title number status price floorPlanByFloorPlanId { ${id} title bedrooms } lotByLotId { ${id} number }
        unitImagesByUnitId(orderBy: [SEQUENCE_ASC]) { nodes { ${id} sequence width height } } activeReservation { ${id} number status expiresAt } } } }`,
      Buyer: `query Buyer($id: UUID!) { buyer${by}(${id}: $id) {
        ${id} firstName lastName email status price projectByProjectId { ${id} title status }
        unitByUnitId { ${id} title number floorPlanByFloorPlanId { ${id} title } lotByLotId { ${id} number } }
        leadByLeadId { ${id} name status } userByAssigneeId { ${id} firstName lastName }
        depositsByBuyerId(orderBy: [SEQUENCE_ASC]) { nodes { ${id} title amount status dueAt } } } }`,
      PublicProjects: `query PublicProjects { allProjects(first: 50, orderBy: [TITLE_ASC, PRIMARY_KEY_ASC]) { nodes { ${id} title slug status } } }`,
      CreateLead: `mutation CreateLead($input: CreateLeadInput!) { createLead(input: $input) { lead { ${id} name status } } }`,
      Groups:
        version === "V5"
          ? `query Groups { allLeads { totalCount groupedAggregates(groupBy: [STATUS]) { keys distinctCount { ${id} } } } }`
          : null,
    },
    variables: {
      Viewer: (_given, { userId }) => ({ id: userId }),
      Leads: ({ status }) => ({ status: status[0] }),
      CreateLead: ({ input }) => ({ input: { lead: input } }),
    },
  };
}
