/** Numbers and dates as people write them in the languages of drafts. */

/** A number with or without groups: 425,000.00 · 425.000,00 · 425 000 · 2,5 */
export const number = String.raw`\d{1,3}(?:[.,'’ ]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)?`;

/** The possible values of a written number: 1.500 is one thousand five hundred, or one and a half. */
export function readings(written: string): number[] {
  const plain = written.replace(/[ '’]/g, "");
  const marks = plain.match(/[.,]/g) ?? [];
  if (marks.length === 0) return [Number(plain)];
  const last = Math.max(plain.lastIndexOf("."), plain.lastIndexOf(","));
  const whole = Number(plain.replace(/[.,]/g, ""));
  const decimal = Number(`${plain.slice(0, last).replace(/[.,]/g, "")}.${plain.slice(last + 1)}`);
  const behind = plain.length - last - 1;
  // Two separators of one kind group digits; two kinds are grouping and a decimal separator.
  if (new Set(marks).size === 2) return [decimal];
  if (marks.length > 1) return [whole];
  return behind === 3 ? [whole, decimal] : [decimal];
}

const languages = ["en", "fr", "es", "de"];
const bare = (name: string) => name.toLowerCase().replace(/\.$/, "");

function namesOf(unit: "month" | "weekday", count: number, at: (n: number) => Date): Map<string, number> {
  const names = new Map<string, number>();
  for (const language of languages)
    for (const style of ["long", "short"] as const) {
      if (unit === "weekday" && style === "short") continue;
      const format = new Intl.DateTimeFormat(language, { [unit]: style, timeZone: "UTC" });
      for (let n = 0; n < count; n++) {
        const name = bare(format.format(at(n)));
        if (name.length > 2) names.set(name, n);
      }
    }
  return names;
}

/** Name of a month → 1 to 12. */
export const months = new Map(
  [...namesOf("month", 12, (n) => new Date(Date.UTC(2024, n, 1)))].map(([name, n]) => [name, n + 1]),
);
/** Name of a day of the week → 0 (Sunday) to 6. */
export const weekdays = namesOf("weekday", 7, (n) => new Date(Date.UTC(2023, 0, 1 + n)));

/** Words for small numbers, as they precede a noun. */
export const numberWords = new Map<string, number>(
  Object.entries({
    one: 1,
    two: 2,
    three: 3,
    four: 4,
    five: 5,
    six: 6,
    seven: 7,
    eight: 8,
    nine: 9,
    ten: 10,
    une: 1,
    deux: 2,
    trois: 3,
    quatre: 4,
    cinq: 5,
    sept: 7,
    huit: 8,
    neuf: 9,
    dix: 10,
    una: 1,
    uno: 1,
    dos: 2,
    tres: 3,
    cuatro: 4,
    cinco: 5,
    seis: 6,
    siete: 7,
    ocho: 8,
    nueve: 9,
    diez: 10,
    ein: 1,
    eine: 1,
    einem: 1,
    einen: 1,
    zwei: 2,
    drei: 3,
    vier: 4,
    fünf: 5,
    sechs: 6,
    sieben: 7,
    acht: 8,
    neun: 9,
    zehn: 10,
  }),
);
