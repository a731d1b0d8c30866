/** Determines from the text of a statement which object it creates, and how to revert it. */
import type { Difference } from "../database/differences.ts";

/** An object that one statement creates. */
export interface CreatedObject {
  kind: "function" | "procedure" | "view" | "policy" | "trigger";
  /** As written in the statement. */
  name: string;
  /** The statement that drops it. It has no arguments, so for functions it only works if the name is unique. */
  drop: string;
  /** The part that cannot be replaced in place: arguments and results of a function. */
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

/** Undefined for grants, comments, calls and other statements that create no named object. */
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

/** The statement in a form that replaces an existing object, if there is such a form. */
export function replacementFor(text: string): string {
  const made = createdObject(text);
  if (made?.kind === "policy" || made?.kind === "trigger") return `${made.drop} ${text}`;
  return text.replace(
    /^create\s+(?:or\s+replace\s+)?(?=(?:function|procedure|view|aggregate)\b)/i,
    "create or replace ",
  );
}

/** The object of a comment; undefined for any other statement. */
export function commentTarget(text: string): string | undefined {
  return /^comment\s+on\s+([^]*?)\s+is\s/i.exec(text)?.[1];
}

/** Privileges, object and grantees of a grant; undefined for any other statement, and for memberships. */
function granted(text: string): { privileges: string; object: string; grantees: string } | undefined {
  const [, privileges, object, grantees] =
    /^grant\s+([^]*?)\s+on\s+([^]*?)\s+to\s+((?:(?!\swith\s|\sgranted\s)[^])*?)\s*;?$/i.exec(text) ?? [];
  return grantees === undefined
    ? undefined
    : { privileges: privileges!, object: object!.replaceAll(/\s+/g, " "), grantees };
}

/**
 * The statement that reverts a grant or a comment; undefined for any other statement. It may revert more: the same
 * privileges from another grant on the object.
 */
export function undoStatement(text: string): string | undefined {
  const target = commentTarget(text);
  if (target) return `comment on ${target} is null;`;
  const grant = granted(text);
  return grant && `revoke ${grant.privileges} on ${grant.object} from ${grant.grantees};`;
}

/** Whether both are grants on the same object, as written. */
export function grantsOnSame(text: string, other: string): boolean {
  const object = granted(text)?.object;
  return object !== undefined && object === granted(other)?.object;
}

/** Whether it is a grant, a revocation or a comment for an object of that name. */
export function describesObject(text: string, name: string): boolean {
  if (!/^(?:grant|revoke|comment\s+on)\s/i.test(text)) return false;
  return new RegExp(String.raw`(?<![\w.])${name.replaceAll(".", "\\.")}(?![\w.])`).test(text);
}

/** A function without its body; any other statement as it is. */
export function withoutBody(text: string): string {
  const [, , body] = /^create\s[^]*?\bas\s+(\$\w*\$)([^]*)\1/i.exec(text) ?? [];
  return body !== undefined && forms.routine.test(text) ? text.replace(body, () => "") : text;
}

/**
 * Functions and rows that the GraphQL schema does not depend on: it only contains rows of enumerations, which are in
 * app_public.
 */
const internal =
  /^(?:row app_(?:hidden|private)\.|(?:comment on )?(?:function|procedure|aggregate) app_private\.)/;

/** Whether the difference is visible in the API. Policies, triggers and bodies of functions are not. */
export function isVisibleInApi({ kind, identity, here, wanted }: Difference): boolean {
  if (kind === "policy" || kind === "trigger" || internal.test(identity)) return false;
  if (kind !== "function" || !here || !wanted) return true;
  return withoutBody(here.create) !== withoutBody(wanted.create);
}
