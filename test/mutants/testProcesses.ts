/** Processes that run test files with a mutant; see testProcess.ts. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { killChild, startChild } from "../harness/child.ts";

const repository = resolve(import.meta.dirname, "../..");
/** Realms of test files leak some 40 MB each, so a process is replaced after this number of files. */
const mostRuns = 25;

export interface Run {
  /** Relative to the repository. */
  file: string;
  /** Statements for each database of the file, executed as its owner. */
  sql?: string;
  /** File for the used tables and functions. */
  usage?: string;
  /** File for the executed parts of source files, in a process that counts them. */
  reach?: string;
  /** Time limit, because a mutant may make a test wait forever. */
  withinMs?: number;
}

export interface TestProcessOptions {
  /** Further environment variables. */
  env?: Record<string, string>;
}

export interface Answer {
  /** The name of the test that failed; null if all passed. */
  failed: string | null;
  /** Whether it failed by a timeout, which may be due to a busy machine. */
  late?: boolean;
  /** Reason why the file could not be run. */
  error?: string;
}

export interface TestProcess {
  /**
   * A test that failed by a timeout is repeated once.
   * @returns the name of the test that failed; null if all passed
   * @throws Error if the file could not be run
   */
  run(run: Run): Promise<string | null>;
  end(): Promise<void>;
}

export function createTestProcess({ env = {} }: TestProcessOptions = {}): TestProcess {
  let child: ChildProcess | undefined;
  let runs = 0;

  async function start(): Promise<ChildProcess> {
    const options = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning"];
    if (env.PLAT_SOURCE_MUTANT) options.push("--import", join(repository, "test/mutation/mutant.ts"));
    const started = startChild([join(import.meta.dirname, "testProcess.ts")], {
      cwd: repository,
      // The output of tests is discarded.
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        ...process.env,
        GRAPHILE_ENV: "test",
        NODE_COMPILE_CACHE: join(repository, "node_modules/.cache/node"),
        NODE_OPTIONS: options.join(" "),
        ...env,
      },
    });
    const [answer] = await Promise.race([
      once(started, "message"),
      once(started, "exit").then(() => [{ ready: false }]),
    ]);
    if (!(answer as { ready: boolean }).ready) throw new Error("The process of the tests did not start.");
    return started;
  }

  async function end(): Promise<void> {
    const ending = child;
    child = undefined;
    if (!ending || ending.exitCode !== null) return;
    const gone = once(ending, "exit");
    ending.disconnect();
    await gone;
  }

  async function runOnce(asked: Run): Promise<Answer> {
    if (runs++ % mostRuns === 0) await end();
    child ??= await start();
    const running = child;
    const over = new AbortController();
    const tooLong = AbortSignal.timeout(asked.withinMs ?? 240_000);
    const signal = AbortSignal.any([over.signal, tooLong]);
    try {
      running.send(asked);
      const answers = [
        once(running, "message", { signal }).then(([answer]) => answer as Answer),
        once(running, "exit", { signal }).then((): Answer => ({ failed: null, error: "The process ended." })),
      ];
      // The other one is aborted at the end.
      for (const answer of answers) answer.catch(() => {});
      const answer = await Promise.race(answers);
      if (answer.error) throw new Error(`${asked.file}: ${answer.error}`);
      return answer;
    } catch (error) {
      child = undefined;
      // Its tests wait, or its code never ends. The next set-up stops its cluster.
      await killChild(running);
      if (tooLong.aborted) return { failed: "took too long", late: true };
      throw error;
    } finally {
      over.abort();
    }
  }

  return {
    async run(asked) {
      const first = await runOnce(asked);
      return (first.failed && first.late ? await runOnce(asked) : first).failed;
    },
    end,
  };
}
