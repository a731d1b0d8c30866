/** The kinds of files: purposes, accepted types by content, and maximum sizes. */

const images = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"];
const texts = ["text/plain", "text/csv"];
const office = [
  "application/msword",
  "application/vnd.ms-excel",
  "application/vnd.ms-powerpoint",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  "application/vnd.oasis.opendocument.text",
  "application/vnd.oasis.opendocument.spreadsheet",
  "application/vnd.oasis.opendocument.presentation",
];

/** Extensions of each type; the first is used for our names, the others are accepted too. */
export const extensions: Readonly<Record<string, readonly string[]>> = {
  "image/png": ["png"],
  "image/jpeg": ["jpg", "jpeg", "jpe", "jfif"],
  "image/webp": ["webp"],
  "image/gif": ["gif"],
  "image/avif": ["avif"],
  "application/pdf": ["pdf"],
  "text/plain": ["txt", "text", "md", "log"],
  "text/csv": ["csv"],
  "application/x-ndjson": ["jsonl", "ndjson"],
  "application/msword": ["doc", "dot"],
  "application/vnd.ms-excel": ["xls", "xlt"],
  "application/vnd.ms-powerpoint": ["ppt", "pps"],
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ["docx", "dotx"],
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ["xlsx", "xltx"],
  "application/vnd.openxmlformats-officedocument.presentationml.presentation": ["pptx", "ppsx"],
  "application/vnd.oasis.opendocument.text": ["odt"],
  "application/vnd.oasis.opendocument.spreadsheet": ["ods"],
  "application/vnd.oasis.opendocument.presentation": ["odp"],
};

/** A megabyte in bytes, as file managers count, so that a file shown as 5 MB is accepted. */
export const MEGABYTE = 2 ** 20;

export interface FileKind {
  /** Bytes. */
  limit: number;
  types: readonly string[];
  /** For error messages. */
  accepted: string;
}

/** By the value of the tag @transform of an upload domain. */
export const fileKinds = {
  storeImage: { limit: 5 * MEGABYTE, types: images, accepted: "PNG, JPEG, WebP, GIF and AVIF" },
  storeDocument: {
    limit: 50 * MEGABYTE,
    types: ["application/pdf", ...office, ...texts, ...images],
    accepted: "PDF, Office, text, CSV and images (PNG, JPEG, WebP, GIF, AVIF)",
  },
  loadRows: { limit: 50 * MEGABYTE, types: texts, accepted: "text and CSV in UTF-8" },
} as const satisfies Record<string, FileKind>;

export type FileKindName = keyof typeof fileKinds;

/** Whether a value names a kind of file. */
export const isFileKind = (name: unknown): name is FileKindName =>
  typeof name === "string" && Object.hasOwn(fileKinds, name);

/** Whether it is the type of an image that can be decoded. */
export const isPicture = (type: string): boolean => images.includes(type);
