import { expect, test } from "@jest/globals";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { migrationText, readMigrations } from "../../src/database/committed.ts";
import { temporaryFolder } from "../harness/service.ts";

const repository = resolve(import.meta.dirname, "../..");

test("the tracked migrations have the headers that their texts require", async () => {
  const migrations = await readMigrations();
  expect(migrations.length).toBeGreaterThan(0);
  let previous: string | undefined;
  for (const migration of migrations) {
    const { text, hash } = migrationText(migration, previous);
    expect(await readFile(join(repository, "migrations/committed", migration.file), "utf8")).toBe(text);
    previous = hash;
  }
});

/** A separate repository with two migrations, and the check of `npm run check` for it. */
async function project() {
  const folder = await temporaryFolder();
  const at = (path: string) => join(folder.path, path);
  await mkdir(at("migrations/committed"), { recursive: true });
  // A copy of the code, so that it checks this folder and not ours.
  await mkdir(at("src"));
  execFileSync("cp", ["-r", join(repository, "src/cli"), join(repository, "src/database"), at("src")]);
  await writeFile(at("package.json"), '{ "type": "module" }');
  await symlink(join(repository, "node_modules"), at("node_modules"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.com", ...args], {
      cwd: folder.path,
      encoding: "utf8",
    });
  const bodies: string[] = [];
  /** Writes the next migration with its headers, or edits the one with the given number. */
  const write = async (body: string, number = bodies.length + 1) => {
    bodies[number - 1] = `${body}\n`;
    let previous: string | undefined;
    for (const [index, text] of bodies.entries()) {
      const file = `${String(index + 1).padStart(6, "0")}-m.sql`;
      const written = migrationText(
        { file, key: "", otherHeaders: [], previous, hash: undefined, body: text },
        previous,
      );
      previous = written.hash;
      await writeFile(at(`migrations/committed/${file}`), written.text);
    }
  };
  const commit = () => {
    git("add", "migrations");
    git("commit", "-qm", "Work");
  };
  const check = () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["src/cli/checkMigrations.ts"], {
      cwd: folder.path,
      encoding: "utf8",
    });
    return { status, output: stdout + stderr };
  };
  await write("create schema a;");
  return { ...folder, at, git, write, commit, check, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test("without git, without a commit and in a shallow clone, the check reports that it is impossible", async () => {
  await using own = await project();
  const unknown = (reason: RegExp) =>
    expect(own.check()).toEqual({
      status: 0,
      output: expect.stringMatching(
        new RegExp(
          `^It could not be determined whether committed migrations were edited: ${reason.source}\n$`,
        ),
      ),
    });
  unknown(/there is no git, or no repository with a commit\./);
  own.git("init", "-q");
  unknown(/there is no git, or no repository with a commit\./);
  own.commit();
  unknown(/migrations\/baseline\.sql is not committed yet\./);
  await writeFile(own.at("migrations/baseline.sql"), "--! Replaces: a b\n");
  own.commit();
  own.git("clone", "-q", "--depth", "1", `file://${own.path}`, "clone");
  await rm(own.at(".git"), { recursive: true });
  execFileSync("cp", ["-r", own.at("clone/.git"), own.at(".git")]);
  unknown(/this clone is shallow \(git fetch --unshallow\)\./);
});

test("from the baseline on, committed migrations cannot be edited or removed, but new ones can be added", async () => {
  await using own = await project();
  own.git("init", "-q");
  await own.write("create schema edited_before_the_baseline;", 1);
  own.commit();
  await own.write("create schema a;", 1);
  await writeFile(own.at("migrations/baseline.sql"), "--! Replaces: a b\n");
  own.commit();
  expect(own.check()).toEqual({ status: 0, output: "" });

  await own.write("create schema b;");
  expect(own.check()).toEqual({ status: 0, output: "" });
  await own.write("create schema b2;", 2);
  expect(own.check()).toEqual({ status: 0, output: "" });
  own.commit();
  expect(own.check()).toEqual({ status: 0, output: "" });

  await own.write("create schema b3;", 2);
  const edited = {
    status: 1,
    output: expect.stringMatching(
      /^migrations\/committed\/000002-m\.sql was edited after it was committed in \w{9}, .*`git checkout \w{9} -- migrations\/committed\/000002-m\.sql`/,
    ),
  };
  expect(own.check()).toEqual(edited);
  // Committing the edit does not change the result.
  own.commit();
  expect(own.check()).toEqual(edited);
  own.git("checkout", "-q", "HEAD^", "--", "migrations");
  own.commit();
  expect(own.check()).toEqual({ status: 0, output: "" });

  await rm(own.at("migrations/committed/000001-m.sql"));
  expect(own.check()).toEqual({
    status: 1,
    output: expect.stringMatching(/000001-m\.sql was removed after it was committed in /),
  });
});

test("a migration that a branch committed and reverted counts on the branch, and not where it was merged", async () => {
  await using own = await project();
  own.git("init", "-q", "-b", "main");
  await writeFile(own.at("migrations/baseline.sql"), "--! Replaces: a b\n");
  own.commit();
  own.git("checkout", "-qb", "branch");
  await own.write("create schema b;");
  own.commit();
  await rm(own.at("migrations/committed/000002-m.sql"));
  own.git("add", "-A");
  own.commit();
  expect(own.check()).toEqual({
    status: 1,
    output: expect.stringMatching(/000002-m\.sql was removed after it was committed in /),
  });
  own.git("checkout", "-q", "main");
  own.git("merge", "-q", "--no-ff", "-m", "Bring in the branch", "branch");
  expect(own.check()).toEqual({ status: 0, output: "" });
});

test("headers that do not match the text are refused, with the command that creates them", async () => {
  await using own = await project();
  await writeFile(own.at("migrations/committed/000002-m.sql"), "create schema b;\n");
  const { status, output } = own.check();
  expect(status).toBe(1);
  expect(output).toMatch(
    /^The hashes in the header of migrations\/committed\/000002-m\.sql .*`npm run migrations:commit -- <name>`/m,
  );
});
