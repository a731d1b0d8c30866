const context = 8;

interface Change {
  /** Where the change begins in both, and how many tokens it covers. */
  from: number;
  to: number;
  removed: number;
  added: number;
}

/**
 * The edits from one sequence to the other, as `… before [-removed-]{+added+} after …`, one line for each changed place.
 * @param separator between two tokens.
 */
export function wordDiff(from: readonly string[], to: readonly string[], separator: string): string[] {
  const lines: string[] = [];
  const text = (pieces: readonly string[]) => pieces.join(separator);
  for (const group of nearby(changes(from, to))) {
    const [first, last] = [group[0]!, group.at(-1)!];
    const start = Math.max(0, first.from - context);
    let line = start > 0 ? ["…"] : [];
    let at = start;
    for (const change of group) {
      if (change.from > at) line.push(text(from.slice(at, change.from)));
      if (change.removed > 0) line.push(`[-${text(from.slice(change.from, change.from + change.removed))}-]`);
      if (change.added > 0) line.push(`{+${text(to.slice(change.to, change.to + change.added))}+}`);
      at = change.from + change.removed;
    }
    const end = Math.min(from.length, last.from + last.removed + context);
    if (end > at) line.push(text(from.slice(at, end)));
    if (end < from.length) line.push("…");
    lines.push(line.join(" "));
  }
  return lines;
}

/** Changes with overlapping contexts are shown together. */
function nearby(all: Change[]): Change[][] {
  const groups: Change[][] = [];
  for (const change of all) {
    const last = groups.at(-1)?.at(-1);
    if (last && change.from - (last.from + last.removed) <= 2 * context) groups.at(-1)!.push(change);
    else groups.push([change]);
  }
  return groups;
}

/** By the longest common subsequence of what remains between equal beginnings and ends. */
function changes(from: readonly string[], to: readonly string[]): Change[] {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start++;
  let [fromEnd, toEnd] = [from.length, to.length];
  while (fromEnd > start && toEnd > start && from[fromEnd - 1] === to[toEnd - 1]) {
    fromEnd--;
    toEnd--;
  }
  const [height, width] = [fromEnd - start, toEnd - start];
  if (height * width > 25_000_000) return [{ from: start, to: start, removed: height, added: width }];
  // lengths[i][j]: of the longest common subsequence of the suffixes from i and j.
  const lengths = Array.from({ length: height + 1 }, () => new Uint16Array(width + 1));
  for (let i = height - 1; i >= 0; i--)
    for (let j = width - 1; j >= 0; j--)
      lengths[i]![j] =
        from[start + i] === to[start + j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
  const found: Change[] = [];
  let [i, j] = [0, 0];
  while (i < height || j < width) {
    if (i < height && j < width && from[start + i] === to[start + j]) {
      i++;
      j++;
      continue;
    }
    const change = { from: start + i, to: start + j, removed: 0, added: 0 };
    while ((i < height || j < width) && !(i < height && j < width && from[start + i] === to[start + j])) {
      if (j >= width || (i < height && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
        i++;
        change.removed++;
      } else {
        j++;
        change.added++;
      }
    }
    found.push(change);
  }
  return found;
}
