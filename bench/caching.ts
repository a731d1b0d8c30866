/**
 * Conditional requests: one process of the service answers the same registered query by GET, in turn with a full
 * response and with 304; the third turn is a server that does nothing else, which shows the limit of Node. This process
 * sends the requests over TLS, and only reads the status of each response.
 * Claim: one process answers 15,000 requests per second with 304. Run: npm run bench -- caching
 */
import { createHash } from "node:crypto";
import { request } from "node:https";
import { connect } from "node:tls";
import { Pool } from "pg";
import { createLoginTokens } from "../src/auth/loginToken.ts";
import { signUp } from "../test/harness/signUp.ts";
import { loadPortfolios } from "./data/portfolios.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";
import { contestants, keys, server } from "./peers/contestants.ts";
import { cpuOf } from "./peers/measure.ts";

const CONNECTIONS = unlessSmoke(64, 2);
const SECONDS = unlessSmoke(3, 0.05);
const ROUNDS = unlessSmoke(5, 1);
const LEADS = sized(10_000, 100);
const QUERY = "query Leads { leads(first: 20) { id name status registeredAt } }";

interface Turn {
  perSecond: number;
  /** Microseconds of CPU time of the process per response. */
  cpu: number;
}

/** A connection that sends the next request after each response, until it is stopped. */
function lane(port: number, head: string, counts: Map<string, number>): { stop(): Promise<void> } {
  let isStopped = false;
  const ended = Promise.withResolvers<void>();
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => socket.write(head));
  let text = "";
  socket.setEncoding("latin1").on("data", (part: string) => {
    text += part;
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    const isChunked = /\r\ntransfer-encoding: chunked/i.test(text);
    if (isChunked ? !text.endsWith("0\r\n\r\n") : text.length < end + 4 + length) return;
    const status = text.slice(9, 12);
    counts.set(status, (counts.get(status) ?? 0) + 1);
    text = "";
    if (!isStopped) return void socket.write(head);
    socket.end();
    ended.resolve();
  });
  socket.once("error", ended.reject);
  return {
    stop: () => {
      isStopped = true;
      return ended.promise;
    },
  };
}

export default async function caching(): Promise<void> {
  await withDatabase(async (database) => {
    const pool = new Pool({ connectionString: database.ownerUrl, max: 2 });
    const sign = createLoginTokens(keys).sign;
    const person = () => signUp(pool, "Reader", (text) => sign(JSON.parse(text) as never));
    const [owner, member, seller] = [await person(), await person(), await person()];
    await loadPortfolios(database.owner, [
      { name: "bench", leads: LEADS, viewers: { owner: owner.id!, member: member.id!, seller: seller.id! } },
    ]);
    const id = `sha256:${createHash("sha256").update(QUERY).digest("hex")}`;
    await pool.query("select app_private.register_document($1, $2)", [id, QUERY]);
    const [plat] = contestants(["Plat"]);
    const running = await plat!.start(database, {});
    const limit = await server("../data/unchangedServer.ts")(database);
    try {
      const path = `/graphql?documentId=${encodeURIComponent(id)}`;
      const url = `https://127.0.0.1:${running.port}${path}`;
      const headOf = (tag?: string) =>
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${owner.token}\r\nAccept: application/json\r\nAccept-Language: en\r\n${tag ? `If-None-Match: ${tag}\r\n` : ""}\r\n`;
      const turn = async (tag: string | undefined, { pid, port } = running): Promise<Turn> => {
        const counts = new Map<string, number>();
        const cpu = await cpuOf(pid);
        const start = performance.now();
        const lanes = Array.from({ length: CONNECTIONS }, () => lane(port, headOf(tag), counts));
        await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
        await Promise.all(lanes.map((one) => one.stop()));
        const elapsed = (performance.now() - start) / 1000;
        const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
        const wanted = counts.get(tag ? "304" : "200") ?? 0;
        if (wanted < total) throw new Error(`Other answers came: ${JSON.stringify([...counts])}`);
        return { perSecond: total / elapsed, cpu: ((await cpuOf(pid)) - cpu) / total };
      };
      await turn(undefined);
      // A query has an entity tag once its statements are known.
      const headers = { authorization: `Bearer ${owner.token}`, "accept-language": "en" };
      const tagOf = () =>
        new Promise<string | undefined>((resolve, reject) => {
          const asked = request(url, { headers, rejectUnauthorized: false }, (answer) => {
            answer.resume().once("end", () => resolve(answer.headers.etag));
          });
          asked.once("error", reject).end();
        });
      let tag: string | undefined;
      for (let n = 0; n < 20 && tag === undefined; n += 1) tag = await tagOf();
      if (tag === undefined) throw new Error("The answer has no tag.");
      const rounds: (readonly [Turn, Turn, Turn])[] = [];
      for (let round = 0; round < ROUNDS; round += 1)
        rounds.push([await turn(undefined), await turn(tag), await turn(tag, limit)]);
      const of = (which: 0 | 1 | 2, what: "perSecond" | "cpu") =>
        percentile(
          rounds.map((round) => round[which][what]),
          0.5,
        );
      for (const [which, label] of [
        [0, "answered anew"],
        [1, "as unchanged"],
        [2, "limit of Node"],
      ] as const)
        console.log(
          `  ${label.padEnd(16)} ${of(which, "perSecond").toFixed(0).padStart(7)} per second, ${of(which, "cpu").toFixed(0)} µs of Node each   × ${(of(which, "perSecond") / of(0, "perSecond")).toFixed(2)}`,
        );
    } finally {
      await limit.stop();
      await running.stop();
      await pool.end();
    }
  });
}
