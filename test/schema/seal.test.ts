/** Sealed texts: the keys and places that open them. */
import { expect, test } from "@jest/globals";
import { createSeal, secretOfWebhook, type SealFault } from "../../src/secrets/seal.ts";
import { sealUnbound } from "../harness/formerSeal.ts";

const key = { kid: "2026.a", secret: "a key of the tests with at least 32 characters" };
const next = { kid: "2026.b", secret: "another key of the tests with 32 characters" };
const here = secretOfWebhook("0190a1de-0000-7000-8000-000000000001");
const elsewhere = secretOfWebhook("0190a1de-0000-7000-8000-000000000002");

/** Why it cannot be opened. */
function fault(open: () => string): string {
  try {
    return `opens: ${open()}`;
  } catch (error) {
    return (error as SealFault).reason;
  }
}

test("opens in its own place, with any key of the list, and is another text each time", () => {
  const seal = createSeal([key]);
  const sealed = seal.seal("whsec_x", here);
  expect(sealed).toMatch(/^v2:2026\.a\.[\w-]+$/);
  expect(sealed.startsWith(`${seal.mark}.`)).toBe(true);
  expect(seal.seal("whsec_x", here)).not.toBe(sealed);
  expect(createSeal([next, key]).open(sealed, here)).toBe("whsec_x");
  // SQL moves a former one to the other column.
  expect(seal.open(sealed, { ...here, column: "app_private.webhook_secrets.previous_sealed" })).toBe(
    "whsec_x",
  );
});

test("opens only for the same row and column, unchanged; the log distinguishes missing and replaced keys", () => {
  const logged: object[] = [];
  const seal = createSeal([key], { log: { error: (facts) => logged.push(facts) } });
  const sealed = seal.seal("whsec_x", here);
  const places = [
    elsewhere,
    { ...here, column: "app_private.integration_secrets.sealed" },
    { column: `${here.column}",`, row: here.row },
  ];
  expect(places.map((place) => fault(() => seal.open(sealed, place)))).toEqual(places.map(() => "PLACE"));
  expect(logged).toEqual(
    places.map((place) => ({ event: "secret.misplaced", code: "SEALED_VALUE_MISPLACED", ...place })),
  );
  const dot = sealed.lastIndexOf(".");
  // Each character of nonce, tag and ciphertext; the first five and a third are the fingerprint.
  for (let at = dot + 7; at < sealed.length - 1; at++) {
    const changed = `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`;
    expect(fault(() => seal.open(changed, here))).toBe("PLACE");
  }
  for (const short of ["", "v2:", `${seal.mark}.`, "v2:2026.a", sealed.slice(0, dot + 6)])
    expect(fault(() => seal.open(short, here))).toMatch(/^(KEY|PLACE)$/);
  expect(fault(() => seal.open(sealed.slice(0, dot + 12), here))).toBe("PLACE");
  expect(fault(() => createSeal([next]).open(sealed, here))).toBe("KEY");
  expect(fault(() => createSeal([{ ...next, kid: key.kid }]).open(sealed, here))).toBe("KEY");
  // Another key of the list, which did not seal it.
  expect(fault(() => createSeal([key, next]).open(sealed.replace(".a.", ".b."), here))).toBe("KEY");
});

test("a text without a row only opens for columns that may contain such texts, and a bound text is never one", () => {
  const former = sealUnbound(key, "whsec_old");
  const some = createSeal([key], { unbound: new Set([here.column]) });
  expect(some.open(former, here)).toBe("whsec_old");
  expect(fault(() => createSeal([key]).open(former, here))).toBe("PLACE");
  expect(fault(() => some.open(former, { ...here, column: "app_private.integration_secrets.sealed" }))).toBe(
    "PLACE",
  );
  expect(fault(() => createSeal([next], { unbound: new Set([here.column]) }).open(former, here))).toBe("KEY");
  // Neither with nor without its fingerprint.
  const bytes = Buffer.from(some.seal("whsec_x", elsewhere).split(".").at(-1)!, "base64url");
  for (const rest of [bytes, bytes.subarray(4)])
    expect(fault(() => some.open(`${key.kid}.${rest.toString("base64url")}`, here))).toBe("KEY");
});
