/**
 * Runs every attack of `npm run test:hostile` once with two clients, so that changes of the API do not break one
 * unnoticed.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { demoFolder } from "../harness/demoFolder.ts";
import { startService, type Service } from "../harness/service.ts";
import { attackNames, play, type Figures } from "./play.ts";
import { serviceEnvironment } from "./serviceEnvironment.ts";
import { factsOf, type Facts } from "./world.ts";

let folder: Awaited<ReturnType<typeof demoFolder>>;
let service: Service;
let facts: Facts;
const clients = 2;
/** PERF: mostly waits, since the service answers one introspection query in four seconds; so it is played beside the others. */
const waiting = "introspection";
let waited: Promise<Figures>;

const playTurn = (name: string, seconds = 30) =>
  play(name, facts, { clients, turns: 1, seconds, rhythmMs: 500 });

beforeAll(async () => {
  folder = await demoFolder();
  service = await startService({ env: serviceEnvironment(folder.path) });
  facts = await factsOf(service, folder.path);
  waited = playTurn(waiting, 120);
  waited.catch(() => {});
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

test.each(attackNames())("%s", async (name) => {
  const figures = await (name === waiting ? waited : playTurn(name));
  expect(figures.faults).toEqual([]);
  expect(figures.turns).toBe(clients);
  expect(figures.bystander.p99).toBeGreaterThan(0);
});
