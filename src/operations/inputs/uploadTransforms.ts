/** Transforms an Upload for SQL: stored content, as {checksum, filename}, or its rows. */
import { Readable } from "node:stream";
import { CodedError, signInFirst } from "../../base/errors.ts";
import { ImportedRows } from "../../imports/importedRows.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import type { Files } from "../../files/files.ts";
import type { Upload } from "../../files/uploadAdmission.ts";
import { tooLarge } from "../../providers/files/incoming.ts";
import { fileKinds, type FileKindName } from "../../providers/files/kinds.ts";
import { RefusedFile, UploadedFile } from "../../files/uploadedFile.ts";

const dataUri = /^data:[^,;]*((?:;[^,;]*)*);base64,/i;

/** The bytes and the parameter `name` of a data URI. */
function readDataUri(text: string, limit: number): { bytes: Buffer; name: string | undefined } {
  const match = dataUri.exec(text.slice(0, 1000));
  const base64 = match ? text.slice(match[0].length) : "";
  if (!match || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(base64))
    throw new CodedError(
      "BAD_USER_INPUT",
      "Send the file as a part of a multipart request, or as a data URI such as data:image/png;base64,….",
      { field: "file" },
    );
  if ((base64.length * 3) / 4 > limit + 2) throw tooLarge(limit);
  const name = /;name=([^;]*)/i.exec(match[1]!)?.[1];
  return { bytes: Buffer.from(base64, "base64"), name: name && decode(name) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * A part is read before its field is executed, as the file kind that the mutation declares; another kind is checked
 * again.
 */
function checkKind({ size, type }: UploadedFile, kind: FileKindName): void {
  const { limit, types, accepted } = fileKinds[kind];
  if (size > limit) throw tooLarge(limit);
  if (!(types as readonly string[]).includes(type))
    throw new CodedError(
      "UNSUPPORTED_FILE",
      `The type of this file is not accepted; use one of these types: ${accepted}.`,
      {
        field: "file",
      },
    );
}

/** The input without the data URI, which the database does not need to decide. */
const withoutTexts = (input: Record<string, unknown>, file: string): Upload["input"] =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== file));

/** Implements the tags of upload domains. */
export function uploadTransforms(files: Files): Record<FileKindName, ArgumentTransform> {
  const take = async (
    kind: FileKindName,
    value: unknown,
    { context, uploadTarget: target, input }: Parameters<ArgumentTransform>[1],
  ): Promise<UploadedFile> => {
    const { userId } = context.claims;
    if (!userId) throw signInFirst();
    if (value instanceof RefusedFile) throw value.reason;
    if (value instanceof UploadedFile) {
      checkKind(value, kind);
      return value;
    }
    const { bytes, name } = readDataUri(value as string, fileKinds[kind].limit);
    const admission = await files.admit({
      kind,
      target,
      input: withoutTexts(input, value as string),
      userId,
      settings: context.pgSettings ?? {},
      atLeast: bytes.length,
      atMost: bytes.length,
      sent: context.sentFiles ?? [],
    });
    try {
      return await files.take(Readable.from([bytes]), kind, name, admission);
    } finally {
      admission.done();
    }
  };
  const store =
    (kind: FileKindName): ArgumentTransform =>
    async (value, details) =>
      (await take(kind, value, details)).toJSON();
  return {
    storeImage: store("storeImage"),
    storeDocument: store("storeDocument"),
    async loadRows(value, details) {
      const { operation, input } = details;
      const file = await take("loadRows", value, details);
      const project = input["projectId"] as string;
      return new ImportedRows({ operation, project, file, open: () => files.read(file) });
    },
  };
}
