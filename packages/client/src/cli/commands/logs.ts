import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { type Command, exitCodes, text, UsageError } from "../command.ts";

/** Fields of each line that are of little use for a single request. */
const COMMON = new Set(["level", "time", "service", "requestId", "msg", "event"]);

export const logs: Command = {
  name: "logs",
  summary: "Show what the log says of one request",
  usage: "[FILE | -]",
  details:
    "The service writes its log to standard output, one JSON object per line, and keeps none itself: give the file that it was redirected to, or pipe it in. Every answer has the id of its request in the header X-Request-Id, and so have errors, events and webhooks. The exit code is 1 if no line is found.",
  options: { request: { type: "string", value: "ID", description: "Id of the request." } },
  examples: [
    "plat logs --request 7bbccd59-70e7-4fa0-ad3c-366bf8d8f1ed plat.log",
    "journalctl -u plat -o cat | plat logs --request 7bbccd59-…",
  ],
  async run(context) {
    const { positionals, out } = context;
    const id = text(context, "request");
    if (!id) throw new UsageError("Say which request: --request ID.");
    const [file = "-"] = positionals;
    const input = file === "-" ? process.stdin : createReadStream(file);
    let found = 0;
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      if (!line.includes(id)) continue;
      let entry: Record<string, unknown>;
      try {
        entry = JSON.parse(line);
      } catch {
        continue;
      }
      if (entry["requestId"] !== id) continue;
      found += 1;
      if (out.json) {
        out.line(line);
        continue;
      }
      const rest = Object.entries(entry)
        .filter(([name]) => !COMMON.has(name))
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
      out.line(
        [entry["time"], String(entry["level"]).toUpperCase(), entry["event"], entry["msg"], ...rest].join(
          " ",
        ),
      );
    }
    if (found > 0) return;
    out.problem("The log has no line of this request.");
    return exitCodes.failed;
  },
};
