import { readdir, readFile, rm, stat } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import S3rver from "s3rver";
import type { S3Options } from "../../src/base/providerOptions.ts";

/** A store that speaks the S3 protocol. */
export interface S3 {
  options: S3Options;
  /** The keys of the stored objects. */
  keys(): Promise<string[]>;
  /** Multipart uploads that were started and not completed. */
  unfinished(): Promise<string[]>;
  /**
   * How reading a content fails, although its metadata are returned: with status 503, in the middle, or without a
   * response.
   */
  failReads(how: "503" | "cut" | undefined): void;
  /** The operations, such as `ObjectCreated:Put`, or `ObjectCreated:Post` for multipart uploads. */
  events: string[];
  close(): Promise<void>;
}

const bucket = "plat";

/** @param directory for its data. @param wanted its port. Default: any free port */
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
  // Parts of the protocol that the package lacks: listing and aborting multipart uploads.
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
