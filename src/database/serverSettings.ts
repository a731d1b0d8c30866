import { escapeLiteral } from "pg";

/** Settings of one request as PostGraphile provides them: names of PostgreSQL settings, including `role`. */
export type PgSettings = Readonly<Record<string, string | undefined>>;

/**
 * Evaluated first by a setter, under the role of the connection: an expression that refuses the batch, and settings
 * of its own.
 */
export interface SetterCheck {
  /** @param parameter takes a value and returns its placeholder */
  readonly expression: (parameter: (value: unknown) => string) => string;
  readonly settings: PgSettings;
}

/** The statement that applies all settings until the end of the transaction. */
export interface Setter {
  readonly text: string;
  readonly values: readonly unknown[];
}

const nothing: PgSettings = {};
const texts = new Map<string, string>();
const MOST_TEXTS = 1000;

/**
 * Makes the setter for these settings; members without a value are omitted, null when none is left.
 * One `set_config` call per setting, in the order given, with the names in the text; values are always parameters.
 * `probe` is an SQL expression that is evaluated with them, under the role of the connection, as is that of `check`; the settings of the
 * latter come after the others and take precedence.
 * `last` is evaluated after all of it, and the last column of the row.
 * The json forms take as long (bench/setter.ts finds no difference beyond its noise); this one is the plainest.
 */
export function makeSetter(
  settings: PgSettings | null | undefined,
  probe?: string,
  check?: SetterCheck,
  last?: string,
): Setter | null {
  if (settings == null) return null;
  const names: string[] = [];
  const values: unknown[] = [];
  const later = check?.settings ?? nothing;
  const add = (name: string, value: string | undefined) => {
    if (value == null) return;
    names.push(name);
    values.push(`${value}`);
  };
  for (const name of Object.keys(settings)) add(name, name in later ? later[name] : settings[name]);
  for (const name of Object.keys(later)) if (!(name in settings)) add(name, later[name]);
  if (names.length === 0) return null;
  const checkExpression = check?.expression((value) => `$${values.push(value)}`);
  return { text: textFor(names, probe, checkExpression, last), values };
}

function textFor(names: readonly string[], probe = "", check = "", last = ""): string {
  const key = [probe, check, last, ...names].join("\0");
  const known = texts.get(key);
  if (known !== undefined) return known;
  const calls = names.map(
    (name, index) => `pg_catalog.set_config(${escapeLiteral(name)}, $${index + 1}, true)`,
  );
  // PERF: counted, so that the values are not sent back.
  const done = `pg_catalog.num_nonnulls(${[check, ...calls, probe].filter((part) => part !== "").join(", ")})`;
  const text = `select ${last === "" ? done : `${done}, ${last}`}`;
  // Names come from our own code, so there are few combinations; the limit guards against a bug.
  if (texts.size < MOST_TEXTS) texts.set(key, text);
  return text;
}
