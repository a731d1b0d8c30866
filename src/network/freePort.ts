import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the ephemeral ports of operating systems (from 32768 on Linux, 49152 elsewhere), one of which could be assigned between the check
 * and the listen call.
 */
const LOWEST = 10_000;
const HIGHEST = 32_767;
const ATTEMPTS = 100;

/** @returns a port that was free on that address a moment ago, and that is not used for outgoing connections. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    const server = createServer().listen(port, host);
    try {
      await once(server, "listening");
    } catch (error) {
      if (attempt < ATTEMPTS && (error as NodeJS.ErrnoException).code === "EADDRINUSE") continue;
      throw error;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
