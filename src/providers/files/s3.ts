import { createReadStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { ignoreEarlyErrors } from "../../base/ignoreEarlyErrors.ts";
import { FileStoreFailed, type FileStore } from "./store.ts";
import type { S3Options } from "../../base/providerOptions.ts";

const require = createRequire(import.meta.url);

/** PERF: loaded where files lie in such a store. */
const packages = () => ({
  ...(require("@aws-sdk/client-s3") as typeof import("@aws-sdk/client-s3")),
  ...(require("@aws-sdk/lib-storage") as typeof import("@aws-sdk/lib-storage")),
});

/** Bytes of one part of an upload, which is what one upload takes of memory: one part is under way at a time. */
const partSize = 5 * 1024 * 1024;

/** Milliseconds to connect to the store. */
const CONNECT_MS = 3_000;
/** Milliseconds until it answers a question, and until it has taken a part of an upload. Each is tried twice. */
const ANSWER_MS = 5_000;
const PART_MS = 30_000;
/** Milliseconds of silence in the middle of a content. */
const SILENCE_MS = 15_000;

/** A store that says nothing more breaks the content off; a reader who takes long to read does not. */
function endsSilence(content: IncomingMessage): Readable {
  content.setTimeout(SILENCE_MS, () => {
    if (content.readableLength === 0)
      content.destroy(new FileStoreFailed("The file store fell silent in the middle of a content."));
  });
  return ignoreEarlyErrors(content);
}

/** What is no failure has no answer. */
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

/** Keeps contents in any store that speaks the S3 protocol. */
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
    // Stores of other makers know no newer checksums; the content's own SHA-256 is in the database.
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
        // A source that breaks off is no failure of the store.
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
      // A thousand at most; further ones follow the next time.
      const begun = await client
        .send(new ListMultipartUploadsCommand({ Bucket: bucket }))
        // Not every store has that, or lets everybody ask; then a rule of its own clears them.
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
