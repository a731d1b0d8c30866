import { readdir } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";

/**
 * `npm run bench` lists the benchmarks; `npm run bench -- NAME …` runs bench/NAME.ts, one after the other. BENCH_SIZE
 * sets the size; see data/size.ts. A benchmark is a file with a default export that runs it and prints the results.
 */
const names = (await readdir(import.meta.dirname))
  .filter((file) => file.endsWith(".ts") && file !== "run.ts")
  .map((file) => file.slice(0, -".ts".length));
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !names.includes(name));

if (chosen.length === 0 || unknown.length > 0) {
  if (unknown.length > 0) console.error(`No such benchmark: ${unknown.join(", ")}`);
  console.log(`Benchmarks: ${names.join(", ")}`);
  process.exitCode = unknown.length > 0 ? 1 : 0;
} else {
  console.log(
    `Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? "unknown processor"}`,
  );
  for (const name of chosen) {
    const benchmark = (await import(`./${name}.ts`)) as { default: () => Promise<void> };
    await benchmark.default();
  }
}
