/** Pictures: their measures, and a small version. */
import { CodedError } from "../base/errors.ts";

/** A picture of more pixels unfolds to hundreds of megabytes, however small its file is. */
const mostPixels = 50_000_000;
/** Width or height of the small version in pixels. */
const thumbnailSize = 480;
/** How many pictures are decoded at the same time. */
const atOnce = 2;

export interface Picture {
  /** As it is shown, after turning it as the camera says. */
  width: number;
  height: number;
  /** WebP without any of the original's metadata. */
  thumbnail: Buffer;
}

/** PERF: loaded at the first picture. */
async function library() {
  const { default: sharp } = await import("sharp");
  // Pictures are read once; a cache of decoded ones would only take memory.
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
 * Reads the picture whole, so that a cut-off one is found out.
 * @throws CodedError UNSUPPORTED_FILE for one that is damaged or has too many pixels
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
      // From 5 on the picture lies on its side.
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
