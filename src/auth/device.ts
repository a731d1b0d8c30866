/** Names of clients, for the list of sessions. */

const MOST_CHARACTERS = 200;

/** The first match wins: browsers also name those that they are derived from. */
const programs: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|CriOS)\//, "Chrome"],
  [/\bVersion\/\S+.* Safari\//, "Safari"],
];
const systems: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];

const firstOf = (names: readonly (readonly [RegExp, string])[], text: string) =>
  names.find(([pattern]) => pattern.test(text))?.[1];

/**
 * A name for the client of a `User-Agent` header, such as "Firefox on Windows", or "curl" for "curl/8.5.0". The
 * header is written by the client, so it proves nothing.
 * @returns null without a header, or for one without a word
 */
export function deviceOf(userAgent: string | undefined): string | null {
  const text = (userAgent ?? "").slice(0, 1000);
  const product = /[A-Za-z0-9][\w .+-]*/.exec(text)?.[0].trim();
  const program = firstOf(programs, text) ?? (product === "Mozilla" ? undefined : product);
  const name = [program, firstOf(systems, text)].filter(Boolean).join(" on ");
  return name === "" ? null : name.slice(0, MOST_CHARACTERS);
}
