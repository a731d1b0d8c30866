import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** PERF: loaded on first use. Its two hundred modules take a twentieth of the start time, and most processes process no payments. */
export const stripePackage = () => require("stripe") as typeof import("stripe").Stripe;
