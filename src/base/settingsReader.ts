/** Reads settings of the environment, each once, and collects what is wrong with them. */
import { readSetting, settings, type SettingName } from "./settings.ts";

type Value<N extends SettingName> = NonNullable<ReturnType<typeof readSetting<N>>>;

export interface SettingsReader {
  readonly env: NodeJS.ProcessEnv;
  /** One sentence for each bad value. */
  readonly problems: string[];
  /** The value of a setting; undefined where it is omitted or was refused. */
  read<N extends SettingName>(name: N): Value<N> | undefined;
  /** That of a setting with a default; it is only undefined when it was refused, and then no configuration is made of it. */
  must<N extends SettingName>(name: N): Value<N>;
}

export function readSettings(env: NodeJS.ProcessEnv): SettingsReader {
  const problems: string[] = [];
  const values = new Map<SettingName, unknown>();
  const read = <N extends SettingName>(name: N) => {
    if (!values.has(name)) values.set(name, readSetting(name, env, problems));
    return values.get(name) as Value<N> | undefined;
  };
  // All of them: what is wrong is told whether or not anything depends on it.
  for (const name of Object.keys(settings)) read(name as SettingName);
  return { env, problems, read, must: (name) => read(name)! };
}
