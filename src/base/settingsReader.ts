/** Reads settings from the environment, each once, and collects the errors. */
import { readSetting, settings, type SettingName } from "./settings.ts";

type Value<N extends SettingName> = NonNullable<ReturnType<typeof readSetting<N>>>;

export interface SettingsReader {
  readonly env: NodeJS.ProcessEnv;
  /** One sentence per invalid value. */
  readonly problems: string[];
  /** Value of a setting; undefined if it is omitted or invalid. */
  read<N extends SettingName>(name: N): Value<N> | undefined;
  /**
   * Value of a setting with a default; only undefined if it is invalid, in which case no configuration is created.
   */
  must<N extends SettingName>(name: N): Value<N>;
}

/** Reads all settings at once, so that `problems` contains every error. */
export function readSettings(env: NodeJS.ProcessEnv): SettingsReader {
  const problems: string[] = [];
  const values = new Map<SettingName, unknown>();
  const read = <N extends SettingName>(name: N) => {
    if (!values.has(name)) values.set(name, readSetting(name, env, problems));
    return values.get(name) as Value<N> | undefined;
  };
  // All settings, so that every error is reported whether or not anything depends on the value.
  for (const name of Object.keys(settings)) read(name as SettingName);
  return { env, problems, read, must: (name) => read(name)! };
}
