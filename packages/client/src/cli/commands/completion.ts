import { commonOptions } from "../arguments.ts";
import { type Command, UsageError } from "../command.ts";

interface Word {
  /** The preceding words, joined by spaces. */
  after: string;
  word: string;
  description: string;
}

/** Candidates for the next word: commands, their second words, and the options of each. */
function words(commands: readonly Command[]): Word[] {
  const found: Word[] = [];
  for (const { name, summary, options } of commands) {
    const parts = name.split(" ");
    for (const [index, word] of parts.entries()) {
      const after = parts.slice(0, index).join(" ");
      if (!found.some((one) => one.after === after && one.word === word))
        found.push({ after, word, description: index === parts.length - 1 ? summary : `plat ${word} …` });
    }
    for (const [option, { description }] of Object.entries({ ...options, ...commonOptions }))
      found.push({ after: name, word: `--${option}`, description });
  }
  return found;
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const scripts: Readonly<Record<string, (found: readonly Word[]) => string>> = {
  bash: (found) => {
    const groups = Map.groupBy(found, ({ after }) => after);
    const cases = [...groups].map(
      ([after, list]) => `    ${quoted(after)}) words=${quoted(list.map(({ word }) => word).join(" "))} ;;`,
    );
    return `_plat() {
  local before="" part words=""
  for part in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do case $part in -*) ;; *) before="\${before:+$before }$part" ;; esac; done
  case $before in
${cases.join("\n")}
    *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _plat plat`;
  },
  zsh: (found) => {
    const groups = Map.groupBy(found, ({ after }) => after);
    const cases = [...groups].map(
      ([after, list]) =>
        `    ${quoted(after)}) list=(${list.map(({ word, description }) => quoted(`${word.replaceAll(":", "\\:")}:${description}`)).join(" ")}) ;;`,
    );
    return `#compdef plat
_plat() {
  local -a list before
  before=(\${\${words[2,CURRENT-1]}:#-*})
  case "\${(j: :)before}" in
${cases.join("\n")}
    *) _files; return ;;
  esac
  _describe plat list || _files
}
compdef _plat plat`;
  },
  fish: (found) =>
    found
      .map(({ after, word, description }) => {
        const given =
          after === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${after.split(" ").at(-1)}`;
        const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
        return `complete -c plat -n ${quoted(given)} ${what} -d ${quoted(description)}`;
      })
      .join("\n"),
};

export const completion: Command = {
  name: "completion",
  summary: "Write a script that completes commands and options in a shell",
  usage: "bash | zsh | fish",
  examples: ["plat completion bash >> ~/.bashrc"],
  async run({ positionals, out }) {
    const script = scripts[positionals[0] ?? ""];
    if (!script) throw new UsageError("Say which shell: bash, zsh or fish.");
    // Imported lazily, because the list of commands contains this module.
    const { commands } = await import("./index.ts");
    out.line(script(words(commands)));
  },
};
