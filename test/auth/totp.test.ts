/** One-time codes by RFC 6238, with the test vectors of its appendix B. */
import { expect, test } from "@jest/globals";
import { newTotpSecret, stepOfCode, totpCode, totpStep } from "../../src/auth/totp.ts";

/** "12345678901234567890" in base 32. */
const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

test.each([
  [59, "94287082"],
  [1_111_111_109, "07081804"],
  [1_111_111_111, "14050471"],
  [1_234_567_890, "89005924"],
  [2_000_000_000, "69279037"],
  [20_000_000_000, "65353130"],
])("at %i seconds the code ends %s", (seconds, eightDigits) => {
  expect(totpCode(secret, totpStep(seconds))).toBe(eightDigits.slice(2));
});

test("accepts codes of the current and adjacent steps only", () => {
  const present = 57_000_000;
  for (const drift of [-1, 0, 1])
    expect(stepOfCode(secret, totpCode(secret, present + drift), present)).toBe(present + drift);
  for (const drift of [-2, 2])
    expect(stepOfCode(secret, totpCode(secret, present + drift), present)).toBeUndefined();
  const code = totpCode(secret, present);
  for (const wrong of [
    "",
    code.slice(1),
    `${code}0`,
    String((Number(code) + 1) % 1_000_000).padStart(6, "0"),
  ])
    expect(stepOfCode(secret, wrong, present)).toBeUndefined();
  expect(stepOfCode(newTotpSecret(), code, present)).toBeUndefined();
});

test("secrets are 160 random bits in base 32", () => {
  const secrets = new Set(Array.from({ length: 100 }, newTotpSecret));
  expect(secrets.size).toBe(100);
  for (const one of secrets) expect(one).toMatch(/^[A-Z2-7]{32}$/);
});
