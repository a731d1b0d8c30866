/** Called by commands for operators: whoever reads what they print may have seen enough, as `head` has, which is no reason to stop. */
export function ignoreClosedOutput(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}
