import { escapeLiteral } from "pg";

/** Settings of one request as PostGraphile hands them over: names of PostgreSQL settings, `role` among them. */
export type PgSettings = Readonly<Record<string, string | undefined>>;

/** The one statement that puts all settings in place until the transaction ends. */
export interface Setter {
  readonly text: string;
  readonly values: readonly string[];
}

const texts = new Map<string, string>();
const MOST_TEXTS = 1000;

/**
 * Makes the setter for these settings; members without a value are left out, null when none is left.
 * One `set_config` call per setting, in the order given, with the names in the text; values are always parameters.
 * `probe` is an SQL expression that is evaluated with them, under the role of the connection.
 * The json forms take as long (bench/setter.ts finds no difference beyond its noise); this one is the plainest.
 */
export function makeSetter(settings: PgSettings | null | undefined, probe?: string): Setter | null {
  if (settings == null) return null;
  const names: string[] = [];
  const values: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (value == null) continue;
    names.push(name);
    values.push(`${value}`);
  }
  if (names.length === 0) return null;
  return { text: textFor(names, probe), values };
}

function textFor(names: readonly string[], probe = ""): string {
  const key = [probe, ...names].join("\0");
  const known = texts.get(key);
  if (known !== undefined) return known;
  const calls = names.map(
    (name, index) => `pg_catalog.set_config(${escapeLiteral(name)}, $${index + 1}, true)`,
  );
  const text = `select ${(probe ? [...calls, probe] : calls).join(", ")}`;
  // Names come from our own code, so there are a handful of sets; the limit only guards against a mistake there.
  if (texts.size < MOST_TEXTS) texts.set(key, text);
  return text;
}
