/** Pieces of SQL: comments, strings, names in quotes, dollar quotes, words and numbers, operators, space, the rest. */
const piece =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\bE'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|[\w$]+|[+*<>=~!@#%^&|`?:/-]+?(?=--|\/\*|[^+*<>=~!@#%^&|`?:/-]|$)|\s+|[\s\S]/g;

/**
 * SQL as the pieces that count: without comments and space, with strings that go on in the next line joined. The body of
 * a function is taken apart as well; what is quoted by dollars inside of it is a literal and stays as it is.
 */
export function tokens(sql: string): string[] {
  return meaningful(sql, true);
}

function meaningful(sql: string, opensBodies: boolean): string[] {
  const found: string[] = [];
  let brokeLine = false;
  for (const [text] of sql.matchAll(piece)) {
    if (isIgnored(text)) {
      brokeLine ||= text.includes("\n") || text.startsWith("--");
      continue;
    }
    const last = found.at(-1);
    if (text.startsWith("'") && brokeLine && last && /^(?:E)?'/.test(last))
      found[found.length - 1] = last.slice(0, -1) + text.slice(1);
    else if (opensBodies && text.startsWith("$")) found.push(...body(text));
    else found.push(text);
    brokeLine = false;
  }
  return found;
}

function isIgnored(text: string): boolean {
  return text.trim() === "" || text.startsWith("--") || text.startsWith("/*");
}

function body(quoted: string): string[] {
  const tag = /^\$\w*\$/.exec(quoted)![0];
  return [tag, ...meaningful(quoted.slice(tag.length, -tag.length), false), tag];
}

/** Text as words and the space between them, of which nothing is lost. */
export function words(text: string): string[] {
  return text.match(/\w+|\s+|[^\w\s]/g) ?? [];
}
