/**
 * Test files run in realms of their own, in which every module is loaded and compiled anew. The API under test runs beside them,
 * in the realm of the process, so that this is done once per process: most of what starting it takes.
 */
import Realm from "./realm.ts";

export default class extends Realm {
  override async setup(): Promise<void> {
    await super.setup();
    // PERF: planning a query takes stacks by the hundred in development and tests, and Jest looks at each of their frames. Tests fail in
    // a realm of their own, where stacks stay long.
    Error.stackTraceLimit = 10;
    // PERF: Jest formats each of these stacks by looking for source maps, of which there are none: types are stripped in place.
    Reflect.deleteProperty(Error, "prepareStackTrace");
    this.global.platHost = () => import("./host.ts");
  }
}
