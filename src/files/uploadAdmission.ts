/** What is decided before the first byte of a file is stored: may the viewer upload it, and is there room for it? */
import { mkdir, statfs } from "node:fs/promises";
import type { Pool } from "pg";
import { asViewer } from "../database/asViewer.ts";
import { CodedError } from "../base/errors.ts";
import { uploadsOfOrganizations, uploadsOfViewers } from "../admission/semaphores.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { organizationParty, partyOf } from "../admission/party.ts";
import { tooLarge } from "../providers/files/incoming.ts";
import { fileKinds, type FileKindName } from "../providers/files/kinds.ts";

/** A file that somebody wants to send. */
export interface Upload {
  kind: FileKindName;
  /** What it is for: a table of files, or the operation of an import; see app_hidden.may_upload. */
  target: string;
  /** The input of the operation, as it came. */
  input: Readonly<Record<string, unknown>>;
  userId: string;
  /** Of a transaction that acts for the viewer. */
  settings: Readonly<Record<string, string | undefined>>;
  /** Bytes that it has at least, as far as they are announced. */
  atLeast: number;
  /** Bytes that it has at most, by what is announced; the limit of its kind where nothing is. */
  atMost: number;
  /** Takes the checksums that the request has sent; see Files.release. */
  sent: string[];
}

export interface Admission {
  readonly upload: Upload;
  /** Whose quota it counts for. */
  readonly organizationId: string | null;
  /** Bytes. */
  readonly quota: number;
  /** Says that the content has arrived, or will not. */
  done(): void;
}

/** Bytes that stay free on the disk, whatever is uploaded: the database and the log write there as well. */
const KEPT_FREE = 500_000_000;

async function requireDisk(folder: string, bytes: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - bytes < KEPT_FREE)
    throw new CodedError("PROVIDER_ERROR", "There is no space for files at the moment; try again later.", {
      provider: "files",
      retryable: true,
    });
}

/**
 * @param pool connections of plat_authenticator
 * @param folder for content on its way in
 * @param quota bytes that an organization, and a user, may keep
 * @param connections shares of the pool
 */
export function createAdmission(pool: Pool, folder: string, quota: number, connections?: FairSemaphore) {
  return {
    /** @throws whatever the operation would be refused with; CodedError PAYLOAD_TOO_LARGE, LIMIT_EXCEEDED, RATE_LIMITED, PROVIDER_ERROR */
    async admit(upload: Upload): Promise<Admission> {
      const { kind, target, input, userId, settings, atLeast } = upload;
      const { limit } = fileKinds[kind];
      if (atLeast > limit) throw tooLarge(limit);
      const party = partyOf(userId, undefined);
      const connection = await connections?.acquire(party);
      let organizationId: string | null;
      try {
        organizationId = await asViewer(pool, settings, async (client) => {
          const text = "select app_hidden.may_upload($1, $2) as id";
          const { rows } = await client.query<{ id: string | null }>(text, [target, JSON.stringify(input)]);
          return rows[0]!.id;
        });
        await pool.query("select app_private.require_storage($1, $2, $3, $4)", [
          organizationId,
          userId,
          Math.max(1, atLeast),
          quota,
        ]);
      } finally {
        connection?.();
      }
      const bytes = Math.min(limit, upload.atMost);
      await requireDisk(folder, bytes);
      const weight = { weight: bytes };
      const held = [await uploadsOfViewers.acquire(party, weight)];
      const done = () => held.forEach((release) => release());
      try {
        if (organizationId !== null)
          held.push(await uploadsOfOrganizations.acquire(organizationParty(organizationId), weight));
      } catch (error) {
        done();
        throw error;
      }
      return { upload, organizationId, quota, done };
    },
  };
}
