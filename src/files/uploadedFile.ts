/**
 * The value of an Upload once its content is stored. Only the service makes one: an object of a caller's is none, so that
 * nobody refers to content they have not sent.
 */
export class UploadedFile {
  /** SHA-256 in hexadecimal digits. */
  readonly checksum: string;
  readonly fileName: string;
  /** Bytes. */
  readonly size: number;
  readonly type: string;

  constructor(checksum: string, fileName: string, size: number, type: string) {
    this.checksum = checksum;
    this.fileName = fileName;
    this.size = size;
    this.type = type;
  }

  /** What SQL gets, and what tells a repeated request from another one. */
  toJSON(): { checksum: string; filename: string } {
    return { checksum: this.checksum, filename: this.fileName };
  }
}

/** A file that arrived and was refused: the field that it is for says why. */
export class RefusedFile {
  readonly reason: Error;

  constructor(reason: Error) {
    this.reason = reason;
  }

  toJSON(): null {
    return null;
  }
}
