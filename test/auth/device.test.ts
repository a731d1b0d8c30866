import { expect, test } from "@jest/globals";
import { deviceOf } from "../../src/auth/device.ts";

test.each([
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0", "Firefox on Windows"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
    "Safari on macOS",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/130.0 Mobile/15E148 Safari/604.1",
    "Chrome on iPhone",
  ],
  [
    "Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0 Mobile Safari/537.36",
    "Samsung Internet on Android",
  ],
  [
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/130.0 Safari/537.36",
    "Chrome on ChromeOS",
  ],
  ["Mozilla/5.0 (X11; Linux x86_64)", "Linux"],
  ["curl/8.5.0", "curl"],
  ["Plat Sales/4.2 (iPad; iOS 18)", "Plat Sales on iPad"],
  ["Plat Sales (build 7)", "Plat Sales"],
  ["Mozilla/5.0 (Linux; Android 10) Chrome/130.0 Mobile Safari/537.36 EdgA/130.0", "Edge on Android"],
  ["Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) Version/18.0 EdgiOS/130.0 Safari/605.1.15", "Edge on iPad"],
  ["Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0 Safari/537.36 OPR/115.0", "Opera on Linux"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) FxiOS/132.0 Safari/605.1.15", "Firefox on iPhone"],
  ["<script>alert(1)</script>", "script"],
  ["", null],
  ["()", null],
  [undefined, null],
])("%j is %j", (userAgent, device) => expect(deviceOf(userAgent)).toBe(device));

test("a name has at most 200 characters", () => {
  expect(deviceOf("x".repeat(10_000))).toHaveLength(200);
});
