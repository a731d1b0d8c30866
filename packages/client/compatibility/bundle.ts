/** Measures the output of a bundler for an application that uses parts of @plat/client. */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const bundled = async (contents: string): Promise<string> => {
  const stdin = { contents, resolveDir: import.meta.dirname };
  const { outputFiles } = await build({
    stdin,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  return outputFiles[0]!.text;
};

export default async function bundle(): Promise<string> {
  const whole = gzipSync(await bundled('export * from "@plat/client"')).length;
  assert.ok(whole < 8_000, `${whole} bytes`);
  const one = await bundled(
    'import { createClient } from "@plat/client"; import { unitQuery } from "@plat/client/documents"; console.log(createClient, unitQuery)',
  );
  assert.ok(one.includes("query Unit(") && !one.includes("query Lead("));
  const used = gzipSync(one).length;
  assert.ok(used < 5_000, `${used} bytes`);
  const webhooks = gzipSync(await bundled('export { verifyWebhook } from "@plat/client"')).length;
  assert.ok(webhooks < 1_500, `${webhooks} bytes`);
  return `by esbuild, minified and compressed: ${whole} bytes, of which an application takes what it uses (${webhooks} for webhooks alone)`;
}
