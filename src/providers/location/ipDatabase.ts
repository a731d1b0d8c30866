import { createRequire } from "node:module";
import { isIP } from "node:net";
import maxmind, { type Reader, type Response } from "maxmind";
import { cityDatabase, isInstalled } from "../../base/optionalPackages.ts";
import type { Place } from "./place.ts";

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The two shapes that records have: flat ones of the embedded database, nested ones of MaxMind. */
type CityRecord = Partial<Place> & { location?: Partial<Place> };

/**
 * Looks IP addresses up in a file of MaxMind's format: one with both families, or else the embedded city database, DB-IP
 * City Lite (CC BY 4.0), one file a family. A file is read when it is first needed and then held in memory: about 65 MB
 * (IPv4) and 75 MB (IPv6) for the embedded ones.
 * @param file a database of cities, such as GeoLite2-City.mmdb. Where there is neither it nor the embedded one, which is an optional package,
 * nothing is known of any address.
 */
export function createIpDatabase(file?: string): (ip: string) => Promise<Place | null> {
  if (file === undefined && !isInstalled(cityDatabase)) return async () => null;
  const open = new Map<string, Promise<Reader<Response>>>();
  const reader = (path: string) => {
    const known = open.get(path);
    if (known) return known;
    const opening = maxmind.open<Response>(path);
    open.set(path, opening);
    opening.catch(() => open.delete(path));
    return opening;
  };
  const embedded = (family: number) =>
    createRequire(import.meta.url).resolve(`${cityDatabase}/dbip-city-ipv${family}.mmdb`);
  return async (given) => {
    const ip = mapped.exec(given)?.[1] ?? given.replace(/%.*$/, "");
    const family = isIP(ip);
    if (family === 0) return null;
    const record = (await reader(file ?? embedded(family))).get(ip) as CityRecord | null;
    const { latitude, longitude } = record?.location ?? record ?? {};
    return typeof latitude === "number" && typeof longitude === "number" ? { latitude, longitude } : null;
  };
}
