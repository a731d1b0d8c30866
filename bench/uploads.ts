/**
 * Cost of uploads: the memory of the service while ten documents of 50 MB arrive concurrently, and the duration of
 * uploads of pictures and documents one after the other. Run: npm run bench -- uploads
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import type { Answer, Person } from "../test/harness/api.ts";
import { migratedFolder, startService, temporaryFolder } from "../test/harness/service.ts";
import { picture, sendRaw, multipartBody } from "../test/harness/upload.ts";
import sharp from "sharp";
import { sized, unlessSmoke } from "./data/size.ts";

/** Megabytes of a document, at most 50; set by BENCH_SIZE. */
const megabytes = sized(50, 1);
const pictures = unlessSmoke(20, 2);
const [width, height] = unlessSmoke([2000, 1400], [200, 140]) as [number, number];

const password = "correct horse battery staple";
const documents = `mutation ($input: UploadProjectDocumentInput!) { uploadProjectDocument(input: $input) { id filesize } }`;
const images = `mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id width } }`;

/** Resident memory of a process in MB. */
async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}

/** Peak of the resident memory during the work, above its start. */
async function peakMb(pid: number, work: () => Promise<unknown>): Promise<{ before: number; peak: number }> {
  const before = await residentMb(pid);
  let peak = before;
  const sample = setInterval(() => {
    residentMb(pid)
      .then((now) => (peak = Math.max(peak, now)))
      .catch(() => {});
  }, 20);
  await work();
  clearInterval(sample);
  return { before, peak };
}

function document(size: number): Buffer {
  const bytes = randomBytes(size);
  bytes.write("%PDF-1.7\n");
  return bytes;
}

export default async function uploads(): Promise<void> {
  await using folder = await (process.env.PLAT_TEST_MIGRATED ? migratedFolder() : temporaryFolder());
  await using service = await startService({
    env: { DATA_DIR: folder.path, NODE_EXTRA_CA_CERTS: undefined },
  });
  const api = { url: `${service.baseUrl}/graphql` };
  const json = (body: object) => ({ body: Buffer.from(JSON.stringify(body)), type: "application/json" });
  const person = { token: null } as unknown as { -readonly [K in keyof Person]: Person[K] };
  const ask = async (query: string, input: object): Promise<any> => {
    const answer = await sendRaw(api, person, json({ query, variables: { input } }));
    if (answer.errors) throw new Error(JSON.stringify(answer.errors));
    return Object.values(answer.data)[0];
  };
  const account = { email: "bench@example.com", password, firstName: "Bench" };
  await ask(`mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }`, account);
  const login = `mutation ($input: LoginInput!) { login(input: $input) { token } }`;
  person.token = (await ask(login, { username: account.email, password })).token;
  const organization = await ask(
    `mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }`,
    { name: "Bench" },
  );
  const project = await ask(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
    {
      organizationId: organization.id,
      title: "Bench",
      currency: "CAD",
    },
  );
  const encode = (query: string, bytes: Buffer) =>
    multipartBody(
      query,
      { input: { projectId: project.id, file: null } },
      { "variables.input.file": { bytes } },
    );
  const send = async (encoded: { body: Buffer; type: string }): Promise<Answer> => {
    const answer = await sendRaw(api, person as Person, encoded);
    if (answer.errors) throw new Error(JSON.stringify(answer.errors));
    return answer;
  };

  // A warm-up, so that the measurement excludes first-time costs.
  await send(await encode(documents, document(1_000_000)));
  await send(await encode(images, await picture()));
  const bodies = await Promise.all(
    Array.from({ length: 10 }, () => encode(documents, document(megabytes * 1_000_000))),
  );
  for (const round of [1, 2]) {
    const started = performance.now();
    const { before, peak } = await peakMb(service.pid, () => Promise.all(bodies.map(send)));
    const seconds = (performance.now() - started) / 1000;
    console.log(
      `10 × ${megabytes} MB at once, round ${round}: ${seconds.toFixed(1)} s, ${((10 * megabytes) / seconds).toFixed(0)} MB/s, memory ${before.toFixed(0)} → ${peak.toFixed(0)} MB (+${(peak - before).toFixed(0)})`,
    );
  }

  const noise = await sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 75 })
    .toBuffer();
  const photos = await Promise.all(
    Array.from({ length: pictures }, async (_, i) =>
      encode(images, Buffer.concat([noise, Buffer.from([i])])),
    ),
  );
  const { before, peak } = await peakMb(service.pid, async () => {
    const started = performance.now();
    await Promise.all(photos.map(send));
    const each = (performance.now() - started) / photos.length;
    console.log(
      `${pictures} photos of ${(noise.length / 1e6).toFixed(1)} MB, ${width} × ${height} pixels, at once: ${each.toFixed(0)} ms each`,
    );
  });
  console.log(
    `memory meanwhile ${before.toFixed(0)} → ${peak.toFixed(0)} MB (+${(peak - before).toFixed(0)})`,
  );
}
