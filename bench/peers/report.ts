/** The results as a Markdown table and as a chart. */
import { availableParallelism, cpus, totalmem } from "node:os";

/** Results of one contestant for one kind of work; medians of the rounds. */
export interface Figures {
  perSecond: number;
  p50: number;
  p95: number;
  p99: number;
  /** Microseconds of CPU time per piece of work. */
  server: number;
  database: number;
  statements: number;
  roundTrips: number;
  /** Number of errors in all rounds. */
  failures: number;
}

/** By title of the work, then by contestant. */
export type Results = Map<string, Map<string, Figures>>;

const whole = (figure: number) => (Number.isFinite(figure) ? Math.round(figure).toLocaleString("en") : "–");
const milliseconds = (figure: number) => figure.toFixed(figure < 10 ? 1 : 0);

/** One line that describes the machine. */
export const machine = (): string =>
  `${availableParallelism()} × ${cpus()[0]?.model.trim() ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}`;

/** A table with one line per contestant and kind of work. */
export function table(results: Results, memory: ReadonlyMap<string, { now: number; most: number }>): string {
  const lines = [
    "| Work | Contestant | Requests/s | p50 | p95 | p99 ms | CPU µs: server | database | Statements | Round trips | Failures |",
    "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
  ];
  for (const [work, of] of results)
    for (const [contestant, f] of of)
      lines.push(
        `| ${work} | ${contestant} | ${whole(f.perSecond)} | ${milliseconds(f.p50)} | ${milliseconds(f.p95)} | ${milliseconds(f.p99)} | ${whole(f.server)} | ${whole(f.database)} | ${whole(f.statements)} | ${whole(f.roundTrips)} | ${f.failures} |`,
      );
  lines.push("", "| Contestant | Memory after all work, MB | Most |", "| --- | --: | --: |");
  for (const [contestant, { now, most }] of memory)
    lines.push(`| ${contestant} | ${whole(now)} | ${whole(most)} |`);
  return `${lines.join("\n")}\n`;
}

const colours = [
  "#888888",
  "#1f77b4",
  "#ff7f0e",
  "#2ca02c",
  "#d62728",
  "#9467bd",
  "#8c564b",
  "#e377c2",
  "#17becf",
  "#bcbd22",
];
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Bars of requests per second, relative to the fastest contestant of each kind of work. */
export function chart(results: Results): string {
  const rows: string[] = [];
  const names = [...new Set([...results.values()].flatMap((of) => [...of.keys()]))];
  let y = 40;
  for (const [work, of] of results) {
    const most = Math.max(...[...of.values()].map(({ perSecond }) => perSecond));
    rows.push(`<text x="10" y="${y}" font-weight="bold">${escaped(work)}</text>`);
    y += 8;
    for (const [name, { perSecond }] of of) {
      const length = Math.max(1, (perSecond / most) * 480);
      rows.push(
        `<rect x="190" y="${y}" width="${length.toFixed(1)}" height="12" fill="${colours[names.indexOf(name) % colours.length]}"/>`,
        `<text x="180" y="${y + 10}" text-anchor="end">${escaped(name)}</text>`,
        `<text x="${(196 + length).toFixed(1)}" y="${y + 10}">${whole(perSecond)}</text>`,
      );
      y += 16;
    }
    y += 24;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="760" height="${y}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
<text x="10" y="18" font-size="13">Requests per second, by work; longer is faster</text>
${rows.join("\n")}
</svg>
`;
}
