import { extensions } from "../providers/files/kinds.ts";

const longest = 150;

/**
 * A file name that is safe to display and to save: without folders, control characters, characters that change the
 * writing direction, or characters that file systems refuse; its extension matches the type of the content.
 */
export function safeFileName(given: string | undefined, type: string): string {
  const fitting = extensions[type] ?? ["bin"];
  const base = (given ?? "")
    .normalize("NFC")
    .replace(/^.*[/\\]/s, "")
    // Control and format characters such as the right-to-left override, lone surrogates, private use.
    .replace(/\p{C}/gu, "")
    .replace(/[<>:"|?*%]/g, "_")
    .replace(/\s+/g, " ")
    .replace(/^[. ]+|[. ]+$/g, "");
  const dot = base.lastIndexOf(".");
  const end = dot < 0 ? "" : base.slice(dot + 1).toLowerCase();
  const known = Object.values(extensions).some((ends) => ends.includes(end));
  const stem = known ? base.slice(0, dot) : base;
  const name = [...stem].slice(0, longest).join("").trim() || "file";
  return `${name}.${fitting.includes(end) ? end : fitting[0]}`;
}

/** The type for the extension of a name made by `safeFileName`. */
export function typeOfName(name: string): string {
  const end = name.slice(name.lastIndexOf(".") + 1);
  const found = Object.entries(extensions).find(([, ends]) => ends.includes(end));
  return found?.[0] ?? "application/octet-stream";
}
