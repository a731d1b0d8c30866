/** A statement in a SQL file. */
export interface SqlStatement {
  /** From its first word up to and including its semicolon, if there is one. */
  text: string;
  /** Its start in the file, in UTF-16 units. */
  offset: number;
  /** Its first line, counted from 1. */
  line: number;
}

const space = /\s/;
const wordStart = /[\p{L}_]/u;
const word = /[\p{L}\p{N}_$]*/uy;
const dollarTag = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;

/**
 * Splits a text into statements as psql does: a semicolon ends a statement outside of comments, strings, quoted
 * names, dollar quotes, parentheses and the `begin atomic … end` of a function body. Comments between statements are
 * dropped.
 */
export function splitStatements(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let start = -1;
  let parentheses = 0;
  let blocks = 0;
  /** The first words of the statement, in lower case. */
  let words: string[] = [];
  const finish = (end: number) => {
    if (start >= 0) statements.push({ text: sql.slice(start, end), offset: start, line: 0 });
    start = -1;
    parentheses = blocks = 0;
    words = [];
  };
  for (let i = 0; i < sql.length;) {
    const character = sql[i]!;
    if (space.test(character)) i++;
    else if (sql.startsWith("--", i)) i = after(sql, "\n", i);
    else if (sql.startsWith("/*", i)) i = endOfComment(sql, i);
    else if (character === ";" && parentheses === 0 && blocks === 0) {
      finish(i + 1);
      i++;
    } else {
      if (start < 0) start = i;
      if (character === "'") i = endOfString(sql, i, false);
      else if (character === '"') i = after(sql, '"', i + 1);
      else if (character === "$") i = endOfDollars(sql, i);
      else if (wordStart.test(character)) {
        word.lastIndex = i;
        const written = word.exec(sql)![0];
        const name = written.toLowerCase();
        i += written.length;
        if (words.length < 4) words.push(name);
        if (sql[i] === "'" && name === "e") i = endOfString(sql, i, true);
        else if (makesRoutine(words)) blocks = depth(blocks, name);
      } else {
        if (character === "(") parentheses++;
        if (character === ")" && parentheses > 0) parentheses--;
        i++;
      }
    }
  }
  finish(sql.trimEnd().length);
  return withLines(sql, statements);
}

/** `end` also ends a `case`, so both are counted. */
function depth(blocks: number, name: string): number {
  if (name === "begin" || (name === "case" && blocks > 0)) return blocks + 1;
  return name === "end" && blocks > 0 ? blocks - 1 : blocks;
}

function makesRoutine(words: readonly string[]): boolean {
  return /^create (?:or replace )?(?:function|procedure)\b/.test(words.join(" "));
}

function after(sql: string, what: string, from: number): number {
  const found = sql.indexOf(what, from);
  return found < 0 ? sql.length : found + what.length;
}

function endOfComment(sql: string, from: number): number {
  let nested = 0;
  for (let i = from; i < sql.length;) {
    if (sql.startsWith("/*", i)) nested++;
    else if (sql.startsWith("*/", i)) nested--;
    else {
      i++;
      continue;
    }
    i += 2;
    if (nested === 0) return i;
  }
  return sql.length;
}

function endOfString(sql: string, from: number, escapes: boolean): number {
  for (let i = from + 1; i < sql.length; i++) {
    if (escapes && sql[i] === "\\") i++;
    else if (sql[i] === "'") {
      if (sql[i + 1] !== "'") return i + 1;
      i++;
    }
  }
  return sql.length;
}

function endOfDollars(sql: string, from: number): number {
  dollarTag.lastIndex = from;
  const tag = dollarTag.exec(sql)?.[0];
  return tag ? after(sql, tag, from + tag.length) : from + 1;
}

function withLines(sql: string, statements: SqlStatement[]): SqlStatement[] {
  let line = 1;
  let at = 0;
  for (const statement of statements) {
    for (; at < statement.offset; at++) if (sql[at] === "\n") line++;
    statement.line = line;
  }
  return statements;
}

/** A position in a text; both numbers start at 1. */
export interface Place {
  line: number;
  column: number;
}

/** Line and column of an offset in UTF-16 units. */
export function placeAt(sql: string, offset: number): Place {
  const before = sql.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

/** PostgreSQL counts characters from 1; converts to an offset in UTF-16 units. */
export function offsetOfPosition(text: string, position: number): number {
  return [...text].slice(0, position - 1).join("").length;
}
