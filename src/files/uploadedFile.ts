/**
 * The value of an Upload once its content is stored. Only the service creates it; an object from a client is not
 * accepted, so that nobody can refer to content that they have not sent.
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

  /** Value for SQL, and for comparing idempotent requests. */
  toJSON(): { checksum: string; filename: string } {
    return { checksum: this.checksum, filename: this.fileName };
  }
}

/** A file that was received and refused: the field that uses it reports why. */
export class RefusedFile {
  readonly reason: Error;

  constructor(reason: Error) {
    this.reason = reason;
  }

  toJSON(): null {
    return null;
  }
}
