/** Shows the progress of a command on stderr: one updating line on a terminal, otherwise a line for each tenth. */
export function progress(): { tell(step: string, bytes?: number, of?: number): void; end(): void } {
  const terminal = process.stderr.isTTY;
  let last = "";
  return {
    tell(step, bytes, of) {
      const part = bytes !== undefined && of ? Math.min(100, Math.floor((100 * bytes) / of)) : undefined;
      const shown = part === undefined || terminal ? part : 10 * Math.floor(part / 10);
      const line =
        shown === undefined ? `${step} …` : `${step}: ${shown} % of ${Math.ceil(of! / 2 ** 20)} MiB`;
      if (line === last) return;
      last = line;
      process.stderr.write(terminal ? `\r\x1b[K${line}` : `${line}\n`);
    },
    end() {
      if (terminal && last) process.stderr.write("\r\x1b[K");
    },
  };
}
