import { randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Minimum characters of a secret. */
const SHORTEST = 32;

/**
 * A random secret that is created on first use and then kept, readable by its owner only.
 * @returns 43 URL-safe characters (256 bits).
 * @throws Error with a sentence for the user if the file contains no secret: an empty one would be known to everybody
 */
export async function loadOrCreateSecret(folder: string, name: string): Promise<string> {
  const file = join(folder, name);
  const fresh = join(folder, `.${name}.${process.pid}.${randomBytes(4).toString("hex")}`);
  const known = await readFile(file, "utf8").catch(ignoreMissing);
  if (known !== undefined) return checked(known, file);
  try {
    // Creating a link is atomic, so that a crash leaves no empty secret and two processes use the same one.
    await writeFile(fresh, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
    await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(fresh, { force: true });
  }
  return checked(await readFile(file, "utf8"), file);
}

function checked(text: string, file: string): string {
  const secret = text.trim();
  if (secret.length < SHORTEST)
    throw new Error(
      `The file ${file} holds no secret: ${secret === "" ? "it is empty" : `it is shorter than ${SHORTEST} characters`}. ` +
        "Restore it from a backup; without one, delete it, and what was signed or sealed with it is lost.",
    );
  return secret;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
