import { readdir, readFile, rm, stat } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import S3rver from "s3rver";
import type { S3Options } from "../../src/base/providerOptions.ts";

/** A store that speaks the S3 protocol. */
export interface S3 {
  options: S3Options;
  /** The keys of what it has. */
  keys(): Promise<string[]>;
  /** Uploads in parts that were begun and not finished. */
  unfinished(): Promise<string[]>;
  /** How it fails those who read a content, though it tells of it as ever: with 503, in the middle, or not at all. */
  failReads(how: "503" | "cut" | undefined): void;
  /** What it did, such as `ObjectCreated:Put, or of parts ObjectCreated:Post`. */
  events: string[];
  close(): Promise<void>;
}

const bucket = "plat";

/** @param directory for what it keeps. @param wanted its port; a free one unless given */
export async function startS3(directory: string, wanted = 0): Promise<S3> {
  const server = new S3rver({
    port: wanted,
    address: "127.0.0.1",
    silent: true,
    directory,
    configureBuckets: [{ name: bucket, configs: [] }],
  });
  const uploads = join(directory, bucket, "._S3rver_uploads");
  let readsFail: "503" | "cut" | undefined;
  const unfinished = () => readdir(uploads).catch(() => []);
  // What the counterpart lacks of the protocol: to tell what was begun, and to break it off.
  server.middleware.unshift(async (ctx, next) => {
    if (ctx.method === "GET" && readsFail === "503") {
      ctx.status = 503;
      ctx.type = "application/xml";
      ctx.body = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
    } else if (ctx.method === "GET" && readsFail === "cut") {
      const { size } = await stat(join(directory, `${ctx.path}._S3rver_object`));
      ctx.respond = false;
      ctx.res.writeHead(200, { "content-length": size });
      ctx.res.write(Buffer.alloc(Math.floor(size / 2)), () => ctx.res.destroy());
    } else if (ctx.method === "GET" && "uploads" in ctx.query) {
      const begun = (await unfinished()).map(async (id) => {
        const key = await readFile(join(uploads, id, "key"), "utf8");
        const since = (await stat(join(uploads, id, "key"))).mtime.toISOString();
        return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${since}</Initiated></Upload>`;
      });
      ctx.type = "application/xml";
      ctx.body = `<ListMultipartUploadsResult><Bucket>${bucket}</Bucket>${(await Promise.all(begun)).join("")}</ListMultipartUploadsResult>`;
    } else if (ctx.method === "DELETE" && ctx.query.uploadId) {
      await rm(join(uploads, basename(ctx.query.uploadId)), { recursive: true });
      ctx.status = 204;
    } else await next();
  });
  const events: string[] = [];
  server.on("event", ({ Records }) => events.push(Records[0]!.eventName));
  const { port }: AddressInfo = await server.run();
  return {
    options: {
      bucket,
      region: "us-east-1",
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    },
    keys: async () =>
      (await readdir(join(directory, bucket))).flatMap(
        (name) => /^(.+)\._S3rver_object$/.exec(name)?.[1] ?? [],
      ),
    unfinished,
    failReads: (how) => void (readsFail = how),
    events,
    close: () => server.close(),
  };
}
