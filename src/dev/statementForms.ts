/** What a statement of a file of objects makes, told from its text, and what takes it away again. */
import type { Difference } from "../database/differences.ts";

/** An object that one statement makes. */
export interface CreatedObject {
  kind: "function" | "procedure" | "view" | "policy" | "trigger";
  /** As it is written. */
  name: string;
  /** Drops it; of a function only where its name says which. */
  drop: string;
  /** What cannot be replaced in place: of a function its arguments and results. */
  shape: string;
}

const word = String.raw`((?:"[^"]+"|[\w.])+)`;
const create = String.raw`^create\s+(?:or\s+replace\s+)?`;
const attribute = String.raw`language|as|stable|immutable|volatile|security|begin|return|parallel|strict|called|cost|rows|set|leakproof`;
const forms = {
  routine: new RegExp(
    String.raw`${create}(function|procedure)\s+${word}\s*(\([^]*?)\s(?:${attribute})\b`,
    "i",
  ),
  view: new RegExp(String.raw`${create}view\s+${word}`, "i"),
  policy: new RegExp(String.raw`^create\s+policy\s+${word}\s+on\s+${word}`, "i"),
  trigger: new RegExp(String.raw`${create}(?:constraint\s+)?trigger\s+${word}\s[^]*?\son\s+${word}`, "i"),
};

/** Undefined for grants, comments, calls and whatever else makes no object of a name. */
export function createdObject(text: string): CreatedObject | undefined {
  const routine = forms.routine.exec(text);
  if (routine) {
    const [, kind, name, shape] = routine as unknown as [string, string, string, string];
    const known = kind.toLowerCase() as "function" | "procedure";
    return { kind: known, name, drop: `drop ${known} ${name};`, shape: shape.replaceAll(/\s+/g, " ") };
  }
  const view = forms.view.exec(text);
  if (view) return { kind: "view", name: view[1]!, drop: `drop view ${view[1]};`, shape: "" };
  for (const kind of ["policy", "trigger"] as const) {
    const [, name, table] = forms[kind].exec(text) ?? [];
    if (name) return { kind, name, drop: `drop ${kind} if exists ${name} on ${table};`, shape: "" };
  }
  return undefined;
}

/** The statement in a form that replaces what is there, where there is such a form. */
export function replacementFor(text: string): string {
  const made = createdObject(text);
  if (made?.kind === "policy" || made?.kind === "trigger") return `${made.drop} ${text}`;
  return text.replace(
    /^create\s+(?:or\s+replace\s+)?(?=(?:function|procedure|view|aggregate)\b)/i,
    "create or replace ",
  );
}

/** What a comment is on; undefined for any other statement. */
export function commentTarget(text: string): string | undefined {
  return /^comment\s+on\s+([^]*?)\s+is\s/i.exec(text)?.[1];
}

/** What a grant gives, what it gives it on, and to whom; undefined for any other statement, and for memberships. */
function granted(text: string): { privileges: string; object: string; grantees: string } | undefined {
  const [, privileges, object, grantees] =
    /^grant\s+([^]*?)\s+on\s+([^]*?)\s+to\s+((?:(?!\swith\s|\sgranted\s)[^])*?)\s*;?$/i.exec(text) ?? [];
  return grantees === undefined
    ? undefined
    : { privileges: privileges!, object: object!.replaceAll(/\s+/g, " "), grantees };
}

/**
 * The statement that takes back what a grant or a comment did; undefined for any other statement. It may take more: the same
 * from another grant on the object.
 */
export function undoStatement(text: string): string | undefined {
  const target = commentTarget(text);
  if (target) return `comment on ${target} is null;`;
  const grant = granted(text);
  return grant && `revoke ${grant.privileges} on ${grant.object} from ${grant.grantees};`;
}

/** Whether both are grants on one object, as they write it. */
export function grantsOnSame(text: string, other: string): boolean {
  const object = granted(text)?.object;
  return object !== undefined && object === granted(other)?.object;
}

/** Whether it says who may use an object, or what it is, of that name. */
export function describesObject(text: string, name: string): boolean {
  if (!/^(?:grant|revoke|comment\s+on)\s/i.test(text)) return false;
  return new RegExp(String.raw`(?<![\w.])${name.replaceAll(".", "\\.")}(?![\w.])`).test(text);
}

/** A function without its body; any other statement as it is. */
export function withoutBody(text: string): string {
  const [, , body] = /^create\s[^]*?\bas\s+(\$\w*\$)([^]*)\1/i.exec(text) ?? [];
  return body !== undefined && forms.routine.test(text) ? text.replace(body, () => "") : text;
}

/** Functions and rows that the schema of GraphQL is not made of: it has the rows of enums only, which are in app_public. */
const internal =
  /^(?:row app_(?:hidden|private)\.|(?:comment on )?(?:function|procedure|aggregate) app_private\.)/;

/** Whether the API shows it; policies, triggers and the bodies of functions are PostgreSQL's own affair. */
export function isVisibleInApi({ kind, identity, here, wanted }: Difference): boolean {
  if (kind === "policy" || kind === "trigger" || internal.test(identity)) return false;
  if (kind !== "function" || !here || !wanted) return true;
  return withoutBody(here.create) !== withoutBody(wanted.create);
}
