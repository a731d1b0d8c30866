/**
 * CPU time until the most expensive documents are refused, and the overhead of the limits for a small document. Run:
 * npm run bench -- queryLimits
 */
import { performance } from "node:perf_hooks";
import { startServer } from "../test/http/server.ts";
import { unlessSmoke } from "./data/size.ts";

const ROUNDS = unlessSmoke(5, 1);

const chain = (fragments: number, leaf = "id") => {
  let text = `fragment f0 on Lead { ${leaf} }`;
  for (let i = 1; i < fragments; i++) text += ` fragment f${i} on Lead { ...f${i - 1} ...f${i - 1} }`;
  return `{ leads { ...f${fragments - 1} } } ${text}`;
};
const times = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => text(i)).join(" ");

const documents: Record<string, string> = {
  "small query": "{ leads(first: 5) { id name project { id } } }",
  "26 fragments, 940 bytes": chain(26),
  "300 fragments": chain(300),
  "10,000 open braces": "{a".repeat(10_000),
  "20,000 tokens": `{ ${"ok ".repeat(20_000)} }`,
  "1,990 times the same field": `{ ${"ok ".repeat(1_990)} }`,
  "900 times the same object": `{ ${"leads { id } ".repeat(900)} }`,
  "900 objects in nested inline fragments": `{ ${"... { leads { id } } ".repeat(600)} }`,
  "450 fragments, each spread once": `{ leads { ${times(440, (i) => `...g${i}`)} } } ${times(440, (i) => `fragment g${i} on Lead { id }`)}`,
  "500 unknown fields": `{ ${times(500, (i) => `x${i}`)} }`,
  "90 KB of comment": `{ ok } #${"x".repeat(90_000)}`,
  "90 KB of one string": `{ echo(text: "${"x".repeat(90_000)}") }`,
};

export default async function queryLimits(): Promise<void> {
  await using server = await startServer();
  await server.graphql("{ ok }");
  for (const [name, query] of Object.entries(documents)) {
    const runs: number[] = [];
    let answer = "";
    for (let run = 0; run < ROUNDS; run++) {
      const from = performance.now();
      // With a different comment each time, so that no cache applies.
      const { json } = await server.graphql(`${query} #${run}`);
      runs.push(performance.now() - from);
      answer = json.errors?.[0].extensions.code ?? "served";
    }
    runs.sort((a, b) => a - b);
    console.log(
      `${name.padEnd(42)} median ${runs[ROUNDS >> 1]!.toFixed(1).padStart(7)} ms  worst ${runs.at(-1)!.toFixed(1).padStart(7)} ms  ${answer}`,
    );
  }
}
