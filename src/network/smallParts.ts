/**
 * Limits the parts in which a body arrives. Each chunk of the transfer encoding, and each TLS record, is a Buffer and an
 * event: ten megabytes in chunks of one byte would take ten seconds, and more than a gigabyte.
 */

/** Parts that any body may have, and the average length in bytes of further ones. */
const FREE_PARTS = 1_000;
export const LEAST_PART = 64;

/** Whether a body with this number of bytes has arrived in too many parts. */
export const areTooMany = (parts: number, bytes: number): boolean => parts > FREE_PARTS + bytes / LEAST_PART;

/** Whether a body with this number of bytes could arrive in too many. */
export const canBeTooMany = (bytes: number): boolean => areTooMany(bytes, bytes);
