/**
 * Lists without the parts that have no rows for their viewer.
 *
 * PERF: a list has a part for each way to have access to a record: by organization, by project, or by assignment. Most
 * viewers have one of them, but PostgreSQL prepares all of them for each execution, which takes as long as reading a
 * page. The sets of the viewer are sent along with the statement and are checked in the same round trip, so that a part
 * whose set is empty can be omitted. src/lists/portfolio.ts marks these parts; policies apply in any case.
 */

import { isEmptySet, type AccessSettings, type SetName } from "./handedAccess.ts";

/** End of a part that has no rows if a set is empty. The part begins with `if` and the function of the set. */
const END_OF_BRANCH = "/* end if */";
const branches = /\/\* if (\w+) \*\/([^]*?)\/\* end if \*\//g;
/** The first call of a function, with the permission it asks for. */
const callOf = (set: string) => new RegExp(String.raw`"${set}"\('([\w.]+)'\)`);
const REMOVED = "/* removed */";

/** The conditional parts of a statement, and its texts by which of them are kept. */
interface Branched {
  readonly conditions: readonly { readonly set: SetName; readonly permission: string }[];
  readonly texts: Map<string, string>;
}

const known = new Map<string, Branched>();
const MOST_CHARACTERS = 8_000_000;
let characters = 0;

/**
 * @param access settings for app_hidden.handed_access that apply to the statement; undefined if they are not known
 * @returns the statement without unnecessary parts, and which of them it has, as part of the name under which it is
 * prepared; "" for all of them
 */
export function withUsedBranches(
  text: string,
  access: AccessSettings | undefined,
): { text: string; form: string } {
  const whole = { text, form: "" };
  if (!access?.["plat.access"] || !text.includes(END_OF_BRANCH)) return whole;
  const branched = branchedOf(text);
  const kept = branched.conditions.map(({ set, permission }) => !isEmptySet(access, set, permission));
  if (!kept.includes(false)) return whole;
  const form = kept.map(Number).join("");
  let reduced = branched.texts.get(form);
  if (reduced === undefined) {
    reduced = without(text, kept);
    branched.texts.set(form, reduced);
    characters += reduced.length;
  }
  return reduced === text ? whole : { text: reduced, form };
}

function branchedOf(text: string): Branched {
  const found = known.get(text);
  if (found) return found;
  const conditions = [...text.matchAll(branches)].map(([, set, branch]) => ({
    set: set as SetName,
    permission: callOf(set!).exec(branch!)![1]!,
  }));
  if (characters > MOST_CHARACTERS) {
    known.clear();
    characters = 0;
  }
  const branched = { conditions, texts: new Map<string, string>() };
  known.set(text, branched);
  characters += text.length;
  return branched;
}

/** The statement without some of its parts; unchanged if none would be left, or a parameter would be unused. */
function without(text: string, kept: readonly boolean[]): string {
  let index = 0;
  const reduced = text
    .replace(branches, (branch) => (kept[index++] ? branch : REMOVED))
    .replaceAll(`${REMOVED} union all `, "")
    .replaceAll(` union all ${REMOVED}`, "");
  if (reduced.includes(REMOVED)) return text;
  const parametersOf = (one: string) => new Set(one.match(/\$\d+/g));
  return parametersOf(reduced).size === parametersOf(text).size ? reduced : text;
}
