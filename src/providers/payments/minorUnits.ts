/**
 * Amounts as the processor counts them: whole numbers of the smallest unit. How many digits that has is the processor's rule,
 * not that of ISO 4217: the forint and the rupiah are counted to the second digit though nobody writes it.
 */
const digits: Record<string, number> = {
  ...Object.fromEntries(
    "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split(" ").map((code) => [code, 0]),
  ),
  ...Object.fromEntries("BHD JOD KWD OMR TND".split(" ").map((code) => [code, 3])),
};

const digitsOf = (currency: string) => digits[currency.toUpperCase()] ?? 2;

/**
 * `"12.5", "CAD"` → 1250
 * @throws RangeError for more digits than the currency has, which the database refused before.
 */
export function toMinor(amount: string, currency: string): number {
  const places = digitsOf(currency);
  const [whole = "", fraction = ""] = amount.split(".");
  const kept = fraction.slice(0, places).padEnd(places, "0");
  const minor = Number(whole + kept);
  if (!/^\d+$/.test(whole + fraction) || /[1-9]/.test(fraction.slice(places)) || !Number.isSafeInteger(minor))
    throw new RangeError(`${currency} has no amount ${amount}.`);
  return minor;
}

/** `1250, "cad"` → `"12.50"` */
export function fromMinor(minor: number, currency: string): string {
  const places = digitsOf(currency);
  const text = String(Math.abs(minor)).padStart(places + 1, "0");
  const whole = text.slice(0, text.length - places);
  return `${minor < 0 ? "-" : ""}${whole}${places ? `.${text.slice(-places)}` : ""}`;
}
