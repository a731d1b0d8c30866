/** Checks before the first byte of a file is stored: permission and available space. */
import { mkdir, statfs } from "node:fs/promises";
import type { Pool } from "pg";
import { asViewer } from "../database/asViewer.ts";
import { CodedError } from "../base/errors.ts";
import { uploadsOfOrganizations, uploadsOfViewers } from "../admission/semaphores.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { organizationParty, partyOf } from "../admission/party.ts";
import { tooLarge } from "../providers/files/incoming.ts";
import { fileKinds, type FileKindName } from "../providers/files/kinds.ts";

/** A file to be uploaded. */
export interface Upload {
  kind: FileKindName;
  /** Purpose: a table of files, or the mutation of an import; see app_hidden.may_upload. */
  target: string;
  /** The input of the mutation, as received. */
  input: Readonly<Record<string, unknown>>;
  userId: string;
  /** Settings of a transaction for the viewer. */
  settings: Readonly<Record<string, string | undefined>>;
  /** Minimum size, as far as announced. */
  atLeast: number;
  /** Maximum size, as announced; otherwise the limit of its kind. */
  atMost: number;
  /** Receives the checksums of the request's files; see Files.release. */
  sent: string[];
}

export interface Admission {
  readonly upload: Upload;
  /** The organization whose quota is charged. */
  readonly organizationId: string | null;
  /** Bytes. */
  readonly quota: number;
  /** Call when the content has arrived, or will not. */
  done(): void;
}

/** Bytes that always stay free on the disk, which the database and the log use as well. */
const KEPT_FREE = 500_000_000;

async function requireDisk(folder: string, bytes: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - bytes < KEPT_FREE)
    throw new CodedError(
      "PROVIDER_ERROR",
      "There is no storage space for files at the moment; try again later.",
      {
        provider: "files",
        retryable: true,
      },
    );
}

/**
 * @param pool connections of plat_authenticator
 * @param folder for uploads in progress
 * @param quota in bytes per organization and user
 * @param connections shares of the pool
 */
export function createAdmission(pool: Pool, folder: string, quota: number, connections?: FairSemaphore) {
  return {
    /**
     * @throws the errors with which the mutation would be refused; CodedError PAYLOAD_TOO_LARGE, LIMIT_EXCEEDED,
     * RATE_LIMITED, PROVIDER_ERROR
     */
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
