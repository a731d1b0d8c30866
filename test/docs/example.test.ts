/** The business day of the tutorial, executed by `npm run example` against the service as users start it. */
import { expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startChild } from "../harness/child.ts";
import { migratedFolder, startService } from "../harness/service.ts";

const repository = join(import.meta.dirname, "../..");

/** Executes the business day against a service with this data folder. */
async function play(address: string, dataDir: string): Promise<{ code: number | null; output: string }> {
  const child = startChild(["example/day.ts"], {
    cwd: repository,
    env: { PATH: process.env.PATH, PLAT_URL: address, PLAT_DATA: dataDir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = await new Promise<number | null>((end) => void child.once("close", end));
  return { code, output };
}

test("the day runs from the first account to the resale, and prints its steps", async () => {
  await using folder = await migratedFolder();
  await using service = await startService({ env: { DATA_DIR: folder.path } });
  const { code, output } = await play(service.baseUrl, folder.path);
  expect(output).toContain("The day is done.");
  expect(code).toBe(0);

  // The sections are those of the tutorial.
  const guide = await readFile(join(repository, "docs/example.md"), "utf8");
  const sections = [...output.matchAll(/^\d+\. .*$/gm)].map(([line]) => line);
  expect([...guide.matchAll(/^## (\d+\. .*)$/gm)].map(([, title]) => title)).toEqual(sections);

  for (const sentence of [
    "The price list brought 200 homes",
    "160 of 200 are released",
    "takes part as AGENCY: Vera Stone can have leads",
    "Bo a second time: CONFLICT on email",
    "199 are leads, C-8 is refused (email). Sent again, 199 are as they were",
    "1005 is HELD for him",
    "Vera of the agency wants the same home: INVENTORY_UNAVAILABLE",
    "pays the fee of $5,000.00: R-000002 was PENDING and is CONFIRMED",
    "PROOF_OF_FUNDS is on file",
    "Vera gives her back to the developer, and sees 0 leads now",
    "status,homes,value",
    "the developer asked $735,000.00: ACCEPTED",
    "Reservation fee is PAID, $730,000.00 are left",
    "Bo Larsen signed with the code of a mail: the agreement is SIGNED",
    "Ada Lang signed with the code of a mail: the agreement is EXECUTED",
    "1005 is CLOSED, sold at $735,000.00",
    "1005 CLOSED, 101 FIRM",
    "the purchase is CANCELLED, 1503 AVAILABLE at $584,000.00",
    "Mira buys it the same day, at $584,000.00",
    "200 rows, 201 lines with the header",
    "Bo Larsen (LEAD)",
    "Ada was signed in at 2 places and is at 1 now",
    "Ein Passwort hat 10 oder mehr Zeichen",
  ])
    expect(output).toContain(sentence);
});
