/** Loaded before a service: its clock is as many milliseconds off as the file CLOCK_FILE says, from the moment in which it says so. */
import { readFileSync } from "node:fs";

const RealDate = Date;
let offMs = 0;
const now = () => RealDate.now() + offMs;
setInterval(() => {
  try {
    offMs = Number(readFileSync(process.env.CLOCK_FILE, "utf8"));
  } catch {
    // There is none yet.
  }
}, 20).unref();
globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
