import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** PERF: loaded when it is needed. Its two hundred modules take a twentieth of a start, and most processes never pay anything. */
export const stripePackage = () => require("stripe") as typeof import("stripe").Stripe;
