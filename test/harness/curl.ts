/** Replaces curl on machines without it. It only supports the options that the README uses. */
import { type IncomingMessage, request as plainRequest } from "node:http";
import { request } from "node:https";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    silent: { type: "boolean", short: "s" },
    fail: { type: "boolean", short: "f" },
    insecure: { type: "boolean", short: "k" },
    header: { type: "string", short: "H", multiple: true },
    data: { type: "string", short: "d" },
  },
});
const headers = Object.fromEntries((values.header ?? []).map((header) => header.split(/: */, 2)));
const url = positionals[0]!;
const options = { method: values.data === undefined ? "GET" : "POST", headers };
const answered = (answer: IncomingMessage) => {
  if (values.fail && answer.statusCode! >= 400) process.exitCode = 22;
  else answer.pipe(process.stdout);
};
const asking = url.startsWith("http:")
  ? plainRequest(url, options, answered)
  : request(url, { ...options, rejectUnauthorized: !values.insecure }, answered);
asking.end(values.data);
