/** Images: their dimensions, and a thumbnail. */
import { CodedError } from "../base/errors.ts";

/** An image with more pixels decodes to hundreds of megabytes, however small its file is. */
const mostPixels = 50_000_000;
/** Maximum width or height of the thumbnail, in pixels. */
const thumbnailSize = 480;
/** Number of images decoded concurrently. */
const atOnce = 2;

export interface Picture {
  /** Size as displayed, after applying the EXIF orientation. */
  width: number;
  height: number;
  /** WebP without the original's metadata. */
  thumbnail: Buffer;
}

/** PERF: loaded for the first image. */
async function library() {
  const { default: sharp } = await import("sharp");
  // Images are read once; a cache of decoded ones would only use memory.
  sharp.cache(false);
  sharp.concurrency(1);
  return sharp;
}

let running = 0;
const waiting: (() => void)[] = [];

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
  else running++;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}

const refuse = (message: string, details: Record<string, unknown> = {}) =>
  new CodedError("UNSUPPORTED_FILE", message, { field: "file", ...details });

/**
 * Decodes the entire image, so that a truncated one is detected.
 * @throws CodedError UNSUPPORTED_FILE for an image that is damaged or has too many pixels
 */
export async function readPicture(path: string): Promise<Picture> {
  const sharp = await library();
  return inTurn(async () => {
    const open = () => sharp(path, { limitInputPixels: mostPixels, failOn: "error" });
    try {
      const { width, height, orientation = 1 } = await open().metadata();
      if (width * height > mostPixels)
        throw refuse(
          `The image has ${width} × ${height} pixels; at most ${mostPixels / 1_000_000} million are allowed.`,
          { limit: mostPixels },
        );
      const thumbnail = await open()
        .rotate()
        .resize(thumbnailSize, thumbnailSize, { fit: "inside", withoutEnlargement: true })
        .toColourspace("srgb")
        .webp({ quality: 80 })
        .toBuffer();
      // From 5 on, width and height are swapped.
      return orientation >= 5 ? { width: height, height: width, thumbnail } : { width, height, thumbnail };
    } catch (error) {
      if (error instanceof CodedError) throw error;
      if (/pixel limit/i.test((error as Error).message))
        throw refuse(
          `The image has too many pixels; at most ${mostPixels / 1_000_000} million are allowed.`,
          {
            limit: mostPixels,
          },
        );
      throw refuse("The image is damaged or incomplete; send it again.");
    }
  });
}
