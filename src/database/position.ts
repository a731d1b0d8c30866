/**
 * The position of a response: how far the write-ahead log reached when its data were read, as a token that clients can
 * send back. A response with this position or a later one includes every change that was acknowledged before.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { CodedError } from "../base/errors.ts";

/** The header that carries a position, in responses and requests. */
export const POSITION_HEADER = "Plat-Position";

/** SQL: the position that a subsequent statement reads at least; text such as 16/B374D848. */
export const REACHED_COLUMN =
  "case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else pg_catalog.pg_current_wal_insert_lsn() end";

/** SQL expression that refuses the batch if its data do not reach a position. */
export const requirePosition = (parameter: string) => `app_private.require_position(${parameter})`;

const VERSION = 1;
/** Bytes: the version, the database, the WAL position. */
const LENGTH = 1 + 4 + 8;

/** Parses an LSN as written by PostgreSQL. */
export function parseLsn(text: string): bigint {
  const [high = "", low = ""] = text.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

const refused = (message: string, field: string) => new CodedError("BAD_USER_INPUT", message, { field });

/** Encodes and decodes the positions of one database. */
export class Positions {
  readonly #database: Buffer;

  /** @param system database system identifier, which differs between clusters */
  constructor(system: string) {
    this.#database = createHash("sha256").update(system).digest().subarray(0, 4);
  }

  /** Encodes a WAL position. */
  write(lsn: bigint): string {
    const bytes = Buffer.allocUnsafe(LENGTH);
    bytes[0] = VERSION;
    this.#database.copy(bytes, 1);
    bytes.writeBigUInt64BE(lsn, 5);
    return bytes.toString("base64url");
  }

  /**
   * Decodes a token to an LSN as written by PostgreSQL.
   * @throws CodedError BAD_USER_INPUT if it is invalid, or belongs to another database
   */
  read(text: unknown, field: string): string {
    const bytes =
      typeof text === "string" && text.length < 64 ? Buffer.from(text, "base64url") : Buffer.alloc(0);
    if (bytes.length !== LENGTH || bytes[0] !== VERSION || bytes.toString("base64url") !== text)
      throw refused("Not a valid position; send one from a response, or none.", field);
    if (!bytes.subarray(1, 5).equals(this.#database))
      throw refused("This position belongs to another database. Read again without it.", field);
    return `${bytes.readUInt32BE(5).toString(16)}/${bytes.readUInt32BE(9).toString(16)}`;
  }

  /**
   * The minimum position that a request asks for, by header or `extensions.position`, which takes precedence.
   * @throws CodedError BAD_USER_INPUT
   */
  requested(request: IncomingMessage & { body?: unknown }): string | undefined {
    const { extensions } = (request.body ?? {}) as { extensions?: Record<string, unknown> | null };
    const inBody = extensions?.["position"];
    if (inBody != null) return this.read(inBody, "extensions.position");
    const header = request.headers["plat-position"];
    return header === undefined ? undefined : this.read(header, POSITION_HEADER);
  }
}
