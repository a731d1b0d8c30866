import { Worker } from "node:worker_threads";
import { createIpDatabase, embeddedCityFiles } from "./ipDatabase.ts";
import type { CityName, LocationProvider, Place } from "./place.ts";

export type { CityName, LocationProvider, Place } from "./place.ts";

/**
 * Creates the location provider: the embedded databases, or a MaxMind file for IP addresses.
 * @param geoipFile a city database in MaxMind's format; without one, the embedded database, if its package is
 * installed.
 */
export function createLocationProvider({ geoipFile }: { geoipFile?: string | undefined }): LocationProvider {
  return {
    locate: createIpDatabase(geoipFile === undefined ? embeddedCityFiles() : () => geoipFile),
    findCities: findCitiesAside,
  };
}

/** Reading the list of cities takes a third of a second and 100 MB: this happens in a thread, and nothing is retained. */
function findCitiesAside(cities: readonly CityName[]): Promise<(Place | null)[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL("./gazetteerThread.ts", import.meta.url), { workerData: cities });
    thread.once("message", resolve).once("error", reject);
    thread.once("exit", () => reject(new Error("The look-up of cities ended without an answer.")));
  });
}
