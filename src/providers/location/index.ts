import { Worker } from "node:worker_threads";
import { createIpDatabase, embeddedCityFiles } from "./ipDatabase.ts";
import type { CityName, LocationProvider, Place } from "./place.ts";

export type { CityName, LocationProvider, Place } from "./place.ts";

/**
 * How the service knows where things are: the embedded databases, or a file of MaxMind's for IP addresses.
 * @param geoipFile a database of cities in MaxMind's format; without one, the embedded database, where its package is installed.
 */
export function createLocationProvider({ geoipFile }: { geoipFile?: string | undefined }): LocationProvider {
  return {
    locate: createIpDatabase(geoipFile === undefined ? embeddedCityFiles() : () => geoipFile),
    findCities: findCitiesAside,
  };
}

/** To read the list of cities takes a third of a second and 100 MB: that is done in a thread, and nothing of it stays. */
function findCitiesAside(cities: readonly CityName[]): Promise<(Place | null)[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL("./gazetteerThread.ts", import.meta.url), { workerData: cities });
    thread.once("message", resolve).once("error", reject);
    thread.once("exit", () => reject(new Error("The look-up of cities ended without an answer.")));
  });
}
