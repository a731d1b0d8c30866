/** What people call a program that signs in, so that they recognise it in the list of their sessions. */

const MOST_CHARACTERS = 200;

/** The first that fits: browsers name those that they are made of, too. */
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
 * A name for whoever sent a `User-Agent` header, such as "Firefox on Windows", or "curl" of "curl/8.5.0". Whoever signs in
 * writes the header, so it proves nothing.
 * @returns null without a header, or for one without a word
 */
export function deviceOf(userAgent: string | undefined): string | null {
  const text = (userAgent ?? "").slice(0, 1000);
  const product = /[A-Za-z0-9][\w .+-]*/.exec(text)?.[0].trim();
  const program = firstOf(programs, text) ?? (product === "Mozilla" ? undefined : product);
  const name = [program, firstOf(systems, text)].filter(Boolean).join(" on ");
  return name === "" ? null : name.slice(0, MOST_CHARACTERS);
}
