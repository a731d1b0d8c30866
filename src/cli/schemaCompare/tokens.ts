/** SQL tokens: comments, strings, quoted names, dollar quotes, words and numbers, operators, white space, the rest. */
const piece =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\bE'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|[\w$]+|[+*<>=~!@#%^&|`?:/-]+?(?=--|\/\*|[^+*<>=~!@#%^&|`?:/-]|$)|\s+|[\s\S]/g;

export interface TokenOptions {
  /** Whether strings are tokenized as SQL, too: most long ones in functions are statements to execute. */
  literals?: boolean;
}

/**
 * The significant tokens of SQL: without comments and white space, with continued strings joined. The body of a function is tokenized as
 * well; other strings are kept, long ones word by word.
 */
export function tokens(sql: string, { literals = false }: TokenOptions = {}): string[] {
  return meaningful(sql, { literals, body: true });
}

interface State {
  literals: boolean;
  /** Whether a dollar-quoted string is the body of a function. */
  body: boolean;
}

function meaningful(sql: string, state: State): string[] {
  const found: string[] = [];
  let brokeLine = false;
  for (const [text] of sql.matchAll(piece)) {
    if (isIgnored(text)) {
      brokeLine ||= text.includes("\n") || text.startsWith("--");
      continue;
    }
    const last = found.at(-1);
    if (text.startsWith("'") && brokeLine && last && isString(last))
      found[found.length - 1] = last.slice(0, -1) + text.slice(1);
    else found.push(text);
    brokeLine = false;
  }
  return found.flatMap((text) => (isString(text) || isDollarQuoted(text) ? literal(text, state) : [text]));
}

function isIgnored(text: string): boolean {
  return text.trim() === "" || text.startsWith("--") || text.startsWith("/*");
}

const isString = (text: string) => /^E?'/.test(text);
const isDollarQuoted = (text: string) => /^\$\w*\$/.test(text) && text.length > 2;

function literal(text: string, state: State): string[] {
  if (isDollarQuoted(text)) {
    const tag = /^\$\w*\$/.exec(text)![0];
    if (state.body || state.literals)
      return [tag, ...meaningful(text.slice(tag.length, -tag.length), { ...state, body: false }), tag];
  } else if (state.literals) {
    const quote = text.slice(0, text.indexOf("'") + 1);
    const content = text.slice(quote.length, -1).replaceAll("''", "'");
    return [quote, ...meaningful(content, { ...state, body: false }), "'"];
  }
  const long = 80;
  return text.length > long ? text.match(/\S+\s*/g)! : [text];
}

/** Text as words and the white space between them, without loss. */
export function words(text: string): string[] {
  return text.match(/\w+|\s+|[^\w\s]/g) ?? [];
}
