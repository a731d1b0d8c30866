import { createReadStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { ignoreEarlyErrors } from "../../base/ignoreEarlyErrors.ts";
import { FileStoreFailed, type FileStore } from "./fileStore.ts";
import type { S3Options } from "../../base/providerOptions.ts";

const require = createRequire(import.meta.url);

/** PERF: loaded only if such a store is configured. */
const packages = () => ({
  ...(require("@aws-sdk/client-s3") as typeof import("@aws-sdk/client-s3")),
  ...(require("@aws-sdk/lib-storage") as typeof import("@aws-sdk/lib-storage")),
});

/** Bytes of one part of an upload, which is its memory usage: one part is sent at a time. */
const partSize = 5 * 1024 * 1024;

/** Milliseconds to connect to the store. */
const CONNECT_MS = 3_000;
/** Milliseconds for a response to a request, and for the upload of a part. Each is tried twice. */
const ANSWER_MS = 5_000;
const PART_MS = 30_000;
/** Milliseconds without data during a download. */
const SILENCE_MS = 15_000;

/** A silent store ends the download; a slow reader does not. */
function endsSilence(content: IncomingMessage): Readable {
  content.setTimeout(SILENCE_MS, () => {
    if (content.readableLength === 0)
      content.destroy(new FileStoreFailed("The file store fell silent in the middle of a content."));
  });
  return ignoreEarlyErrors(content);
}

/** A success has no failure to translate. */
function unless(harmless: readonly string[], refuse: (error: unknown) => never) {
  return (error: Error): undefined => (harmless.includes(error.name) ? undefined : refuse(error));
}
const missing = ["NoSuchKey", "NotFound"];

function failed(what: string): (error: unknown) => never {
  return (error) => {
    throw new FileStoreFailed(`The file store could not ${what}: ${(error as Error).message}`, {
      cause: error,
    });
  };
}

/** Stores contents in any store with the S3 protocol. */
export function createS3({ bucket, region, endpoint, credentials }: S3Options): FileStore {
  const {
    AbortMultipartUploadCommand,
    DeleteObjectsCommand,
    GetObjectCommand,
    HeadObjectCommand,
    ListMultipartUploadsCommand,
    S3Client,
    Upload,
  } = packages();
  const client = new S3Client({
    region,
    ...(endpoint ? { endpoint, forcePathStyle: true } : {}),
    ...(credentials ? { credentials } : {}),
    // Stores of other vendors do not support newer checksums; the database has the SHA-256 of the content.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: 2,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: PART_MS,
      throwOnRequestTimeout: true,
    },
  });
  return {
    async put(key, content, { type }) {
      let broken: Error | undefined;
      const body = content instanceof Readable ? content : createReadStream(content.path);
      body.on("error", (error: Error) => (broken = error));
      const upload = new Upload({
        client,
        params: { Bucket: bucket, Key: key, Body: body, ContentType: type },
        partSize,
        queueSize: 1,
      });
      await upload.done().catch((error: unknown) => {
        // A source that ends early is not a failure of the store.
        throw broken ?? failed("take a content")(error);
      });
    },
    async get(key, range) {
      const bytes = range && `bytes=${range.start}-${range.end}`;
      const command = new GetObjectCommand({ Bucket: bucket, Key: key, Range: bytes });
      const answer = await client
        .send(command, { requestTimeout: ANSWER_MS })
        .catch(unless(missing, failed("give a content")));
      return answer?.Body && endsSilence(answer.Body as IncomingMessage);
    },
    async size(key) {
      const command = new HeadObjectCommand({ Bucket: bucket, Key: key });
      const answer = await client
        .send(command, { requestTimeout: ANSWER_MS })
        .catch(unless(missing, failed("find a content")));
      return answer?.ContentLength;
    },
    async delete(keys) {
      if (keys.length === 0) return;
      const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true };
      const answer = await client
        .send(new DeleteObjectsCommand({ Bucket: bucket, Delete }))
        .catch(failed("delete contents"));
      const [error] = (answer.Errors ?? []).filter(({ Code }) => Code !== "NoSuchKey");
      if (error) throw new FileStoreFailed(`The file store could not delete a content: ${error.Message}`);
    },
    async sweep(before) {
      // At most a thousand; others follow in the next run.
      const begun = await client
        .send(new ListMultipartUploadsCommand({ Bucket: bucket }))
        // Not all stores support or allow this; then a lifecycle rule of the store removes them.
        .catch(unless(["NotImplemented", "AccessDenied"], failed("list uploads that broke off")));
      for (const { Key, UploadId, Initiated } of begun?.Uploads ?? [])
        if (Initiated! < before)
          await client
            .send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }))
            .catch(unless(["NoSuchUpload"], failed("clear an upload that broke off")));
    },
    async close() {
      client.destroy();
    },
  };
}
