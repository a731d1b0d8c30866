/**
 * Each test file runs in its own realm, in which every module is loaded and compiled again. The API under test runs in
 * the realm of the process, so that its modules are loaded once per process: loading is most of the time of a start.
 */
import Realm from "./realm.ts";

export default class extends Realm {
  override async setup(): Promise<void> {
    await super.setup();
    // PERF: in development and tests, planning a query captures hundreds of stack traces, and Jest processes each
    // frame. The limit only applies in the realm of the process; in the realms of tests, stack traces remain long.
    Error.stackTraceLimit = 10;
    // PERF: Jest formats each stack trace with source maps. There are none: types are stripped in place.
    Reflect.deleteProperty(Error, "prepareStackTrace");
    this.global.platHost = () => import("./host.ts");
  }
}
