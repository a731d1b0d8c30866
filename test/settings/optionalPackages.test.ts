import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import {
  agentProtocol,
  cityDatabase,
  isInstalled,
  missingPackages,
} from "../../src/base/optionalPackages.ts";
import { settings } from "../../src/base/settings.ts";

test("features with missing packages name what to install", () => {
  const installed = (name: string) => name !== "@aws-sdk/lib-storage" && name !== "openai";
  expect(missingPackages(["@aws-sdk/client-s3", "@aws-sdk/lib-storage", "openai"], installed)).toBe(
    "needs packages that are not installed: run `npm install @aws-sdk/lib-storage openai`",
  );
  expect(missingPackages(["@aws-sdk/client-s3"], installed)).toBeUndefined();
  expect(isInstalled("no-such-package-anywhere")).toBe(false);
  expect(isInstalled("graphql")).toBe(true);
});

test("packages for settings are optional peer dependencies, and installed for development", async () => {
  const manifest = JSON.parse(await readFile("package.json", "utf8"));
  const named = Object.values(settings as Record<string, { packages?: unknown }>).flatMap(({ packages }) =>
    typeof packages === "function"
      ? ["openai", "anthropic"].flatMap((value) => packages(value))
      : ((packages ?? []) as string[]),
  );
  expect([...named, cityDatabase, agentProtocol].toSorted()).toEqual(
    Object.keys(manifest.peerDependencies).toSorted(),
  );
  for (const name of Object.keys(manifest.peerDependencies)) {
    expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true });
    // The city database has 130 MB, and tests write one of their own.
    if (name === cityDatabase) continue;
    expect(manifest.devDependencies[name]).toBe(manifest.peerDependencies[name]);
    expect(isInstalled(name)).toBe(true);
  }
});
