import { afterAll } from "@jest/globals";
import pino from "pino";
import { createCompute, type Compute, type ComputeOptions } from "../../src/compute/computePool.ts";

/** The real compute threads, ended after the tests of the file. */
export function testCompute(options?: Partial<ComputeOptions>): Compute {
  const compute = createCompute({ log: pino({ level: process.env.TEST_LOG ?? "silent" }), ...options });
  afterAll(() => compute.stop());
  return compute;
}
