/** Profiles of `plat`: the service and the token, in a file that only its owner can read. */
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UsageError } from "./command.ts";

/** A service, and the token of a user. */
export interface Profile {
  /** The URL of the service, such as `https://localhost:8443`. */
  readonly url?: string;
  readonly token?: string;
  /** The default organization of commands, by id or slug. */
  readonly organization?: string;
  /** Certificates that are trusted in addition to those of the system, in PEM. */
  readonly certificate?: string;
}

type Profiles = Record<string, Profile>;
type Env = Readonly<Record<string, string | undefined>>;

/** The file with the profiles: `plat/profiles.json` in the configuration folder of the user. */
export function profilesFile(env: Env): string {
  const folder = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
  return join(folder, "plat", "profiles.json");
}

async function readProfiles(env: Env): Promise<Profiles> {
  let text: string;
  try {
    text = await readFile(profilesFile(env), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
  try {
    return JSON.parse(text) as Profiles;
  } catch {
    throw new UsageError(`${profilesFile(env)} is not valid JSON: mend it, or delete it and sign in again.`);
  }
}

/** The profile with this name; empty if there is none. */
export async function readProfile(env: Env, name: string): Promise<Profile> {
  return (await readProfiles(env))[name] ?? {};
}

/** Stores a profile, or removes it if undefined is given. The file is replaced atomically. */
export async function writeProfile(env: Env, name: string, profile: Profile | undefined): Promise<void> {
  const profiles = await readProfiles(env);
  if (profile) profiles[name] = profile;
  else delete profiles[name];
  const file = profilesFile(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, `${JSON.stringify(profiles, undefined, 2)}\n`, { mode: 0o600 });
  await chmod(fresh, 0o600);
  await rename(fresh, file);
}
