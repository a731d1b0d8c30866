import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** PERF: loaded with the first mail. */
export const mailPackage = () => require("nodemailer") as typeof import("nodemailer");
