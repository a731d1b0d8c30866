import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** A self-signed certificate for localhost, and its key. */
export interface Certificate {
  cert: string;
  key: string;
}

interface Kept extends Certificate {
  madeAt: number;
}

const folder = resolve(import.meta.dirname, "../../node_modules/.cache");
const file = join(folder, "test-certificate.json");
const keptForMs = 7 * 86_400_000;

/**
 * Created once and kept for a week: loading the library and creating a certificate takes half a second in each realm.
 */
export async function testCertificate(): Promise<Certificate> {
  const kept = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as Kept,
    () => undefined,
  );
  if (kept && kept.madeAt > Date.now() - keptForMs) return kept;
  const { generate } = await import("selfsigned");
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keySize: 2048,
  });
  // If the packages belong to another user, it is created each time.
  await keep({ cert, key, madeAt: Date.now() }).catch(() => {});
  return { cert, key };
}

async function keep(made: Kept): Promise<void> {
  await mkdir(folder, { recursive: true });
  // Written atomically: other processes may read it meanwhile.
  const unfinished = `${file}.${process.pid}`;
  await writeFile(unfinished, JSON.stringify(made), { mode: 0o600 });
  await rename(unfinished, file);
}
