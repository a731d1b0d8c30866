/**
 * Test files run in realms of their own, in which every module is loaded and compiled anew. The API under test runs beside them,
 * in the realm of the process, so that this is done once per process: most of what starting it takes.
 */
import { TestEnvironment } from "jest-environment-node";

export default class extends TestEnvironment {
  override async setup(): Promise<void> {
    await super.setup();
    this.global.platHost = () => import("./host.ts");
  }
}
