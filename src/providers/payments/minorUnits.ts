/**
 * Amounts in the processor's smallest unit, as whole numbers. The number of digits follows the processor's rules, not ISO 4217: the forint
 * and the rupiah have two digits, although these are never written.
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
 * @throws RangeError for more digits than the currency has, which the database has already refused.
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
