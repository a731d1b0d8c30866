/** Stands in for curl on machines without it: the options that the README uses, and no others. */
import { request } from "node:https";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    silent: { type: "boolean", short: "s" },
    insecure: { type: "boolean", short: "k" },
    header: { type: "string", short: "H", multiple: true },
    data: { type: "string", short: "d" },
  },
});
const headers = Object.fromEntries((values.header ?? []).map((header) => header.split(/: */, 2)));
const asking = request(
  positionals[0]!,
  { method: "POST", headers, rejectUnauthorized: !values.insecure },
  (answer) => answer.pipe(process.stdout),
);
asking.end(values.data);
