/** How long a request counts among those of its network: until its response, or for a second. */
import { get, type RequestListener, type ServerResponse } from "node:http";
import { afterEach, expect, jest, test } from "@jest/globals";
import { REQUEST_HOLD_MS, requests } from "../../src/admission/semaphores.ts";
import { listen } from "../../src/http/listen.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

test("requests without a response count for a second, the oldest first, and are looked through while there are any", async () => {
  let now = 1_000;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  const begun = jest.spyOn(globalThis, "setInterval");
  const ended = jest.spyOn(globalThis, "clearInterval");
  const responses: ServerResponse[] = [];
  const app: RequestListener = (_request, response) => void responses.push(response);
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key });
  const ask = async () => {
    const before = responses.length;
    get({ port: server.port, agent: false }).on("error", () => {});
    await until(() => responses.length > before);
  };
  const sweeps = () =>
    begun.mock.calls.flatMap(([sweep, ms], at) =>
      ms === REQUEST_HOLD_MS / 4 && sweep.name === "sweep"
        ? [{ sweep, timer: begun.mock.results[at]!.value as NodeJS.Timeout }]
        : [],
    );
  const held = (): number => requests.numbers.held;

  await ask();
  now += 1;
  await ask();
  expect(sweeps()).toHaveLength(1);
  const [{ sweep, timer }] = sweeps() as [ReturnType<typeof sweeps>[number]];
  // It does not keep the process running.
  expect(timer.hasRef()).toBe(false);
  now = 1_000 + REQUEST_HOLD_MS - 1;
  sweep();
  expect(held()).toBe(2);
  now += 1;
  sweep();
  expect(held()).toBe(1);
  expect(ended.mock.calls).not.toContainEqual([timer]);
  now += 1;
  sweep();
  expect([held(), ended.mock.calls.filter(([one]) => one === timer).length]).toEqual([0, 1]);

  // A response that is complete no longer counts, and releases nothing a second time.
  await ask();
  expect(sweeps()).toHaveLength(2);
  expect(held()).toBe(1);
  responses[2]!.end();
  await until(() => held() === 0);
  now += 2 * REQUEST_HOLD_MS;
  sweep();
  expect(held()).toBe(0);
  for (const response of responses) response.destroy();
  await server.close(0);
});
