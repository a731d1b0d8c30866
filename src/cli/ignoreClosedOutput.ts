/** Called by commands for operators: a reader such as `head` may close their output early, which is no reason to stop. */
export function ignoreClosedOutput(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}
