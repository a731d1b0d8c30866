import { createRequire } from "node:module";
import { isIP } from "node:net";
import maxmind, { type Reader, type Response } from "maxmind";
import { cityDatabase, isInstalled } from "../../base/optionalPackages.ts";
import type { Place } from "./place.ts";

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The two formats of records: flat in the embedded database, nested in MaxMind's. */
type CityRecord = Partial<Place> & { location?: Partial<Place> };

/**
 * The files of the embedded city database, DB-IP City Lite (CC BY 4.0), one per address family; undefined if its package is not installed.
 */
export function embeddedCityFiles(): ((family: number) => string) | undefined {
  if (!isInstalled(cityDatabase)) return undefined;
  const { resolve } = createRequire(import.meta.url);
  return (family) => resolve(`${cityDatabase}/dbip-city-ipv${family}.mmdb`);
}

/**
 * Locates IP addresses with files in MaxMind's format. A file is loaded on first use and stays in memory: about 65 MB (IPv4) and 75 MB
 * (IPv6) for the embedded ones.
 * @param fileOf the city database for an address family, 4 or 6; undefined if there is none: then no address can be located.
 */
export function createIpDatabase(
  fileOf: ((family: number) => string) | undefined,
): (ip: string) => Promise<Place | null> {
  if (!fileOf) return async () => null;
  const open = new Map<string, Promise<Reader<Response>>>();
  const reader = (path: string) => {
    const known = open.get(path);
    if (known) return known;
    const opening = maxmind.open<Response>(path);
    open.set(path, opening);
    opening.catch(() => open.delete(path));
    return opening;
  };
  return async (given) => {
    const ip = mapped.exec(given)?.[1] ?? given.replace(/%.*$/, "");
    const family = isIP(ip);
    if (family === 0) return null;
    const record = (await reader(fileOf(family))).get(ip) as CityRecord | null;
    const { latitude, longitude } = record?.location ?? record ?? {};
    return typeof latitude === "number" && typeof longitude === "number" ? { latitude, longitude } : null;
  };
}
