/** The parts of `npm run check`: processes that check the project concurrently. */
import { spawn } from "node:child_process";
import { constants } from "node:os";

export interface CheckPart {
  /** Name in the list of failures. */
  name: string;
  command: string;
  args: readonly string[];
  /** Whether its output is only shown if it fails. */
  chatty?: boolean;
}

/**
 * Runs a part, and then shows its complete output.
 * @returns whether it passed; not if it could not be started, or was killed
 */
export async function runPart(
  { name, command, args, chatty = false }: CheckPart,
  options: { cwd: string; env?: NodeJS.ProcessEnv; show: (text: string) => void },
): Promise<boolean> {
  const { cwd, env = process.env, show } = options;
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const status = await new Promise<number>((resolve) => {
    child.once("error", (error) => {
      output += `${error.message}\n`;
      resolve(1);
    });
    child.once("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
  const isGreen = status === 0;
  if (!isGreen) show(`${name}: red (${status})\n${output}`);
  else if (output && !chatty) show(output);
  return isGreen;
}
