/**
 * The connection by which a process hears that there is something to do, and by which others see that it lives: what the process
 * holds bears the number of the line's server process, and is anybody's as soon as that is gone. A line that breaks is made anew.
 */
import { Client } from "pg";
import type { Logger } from "../log.ts";

export interface CallLineOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** Shown in pg_stat_activity, and in the log. */
  applicationName: string;
  log: Logger;
  /** The channel to listen on, and what to do when somebody calls. */
  listen?: { channel: string; called: (payload: string | undefined) => void };
  /** Said on each new connection before it counts. */
  connected?: (client: Client) => Promise<void>;
}

/** A line that is up. */
export interface Line {
  readonly client: Client;
  /** Of the server process behind it. */
  readonly pid: number;
}

export interface CallLine {
  /** Undefined while it is broken. */
  current(): Line | undefined;
  /** Looks at once, after each repair and every `everyMs`: for what waits for a time, and for calls that were missed. */
  keep(look: () => void, everyMs: number): void;
  /** No looks and no repairs from now on; the line stays for what is under way. */
  rest(): Promise<void>;
  end(): Promise<void>;
}

/** Opens the line; throws where the database cannot be reached. */
export async function openCallLine(options: CallLineOptions): Promise<CallLine> {
  const { connectionString, applicationName, log, listen, connected } = options;
  let line: Line | undefined;
  let resting = false;
  let timer: NodeJS.Timeout | undefined;
  let repairing: Promise<void> | undefined;

  async function connect(): Promise<void> {
    const client = new Client({ connectionString, application_name: applicationName, keepAlive: true });
    const lost = () => {
      if (line?.client === client) line = undefined;
    };
    client.on("error", (error) => {
      if (!resting) log.warn({ err: error, line: applicationName }, "A call line broke; it is made anew.");
      lost();
    });
    client.on("end", lost);
    if (listen) client.on("notification", ({ payload }) => listen.called(payload));
    await client.connect();
    try {
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      // A machine that vanished without a word is noticed within half a minute.
      await client.query(
        "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3",
      );
      if (listen) await client.query(`listen ${listen.channel}`);
      await connected?.(client);
      line = { client, pid: rows[0]!.pid };
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  await connect();
  return {
    current: () => line,
    keep(look, everyMs) {
      const turn = () => {
        look();
        if (line) return;
        repairing ??= connect()
          .then(look)
          .catch((error: unknown) => {
            if (!resting)
              log.warn(
                { err: error, line: applicationName },
                "A call line could not be made; it is tried again.",
              );
          })
          .finally(() => (repairing = undefined));
      };
      timer = setInterval(turn, everyMs);
      look();
    },
    async rest() {
      resting = true;
      clearInterval(timer);
      await repairing;
    },
    async end() {
      await line?.client.end();
    },
  };
}
