import { findCities } from "./gazetteer.ts";
import { createIpDatabase } from "./ipDatabase.ts";
import type { LocationProvider } from "./place.ts";

export type { CityName, LocationProvider, Place } from "./place.ts";

/**
 * How the service knows where things are: the embedded databases, or a file of MaxMind's for IP addresses.
 * @param geoipFile a database of cities in MaxMind's format; without one, the embedded database.
 */
export function createLocationProvider({ geoipFile }: { geoipFile?: string | undefined }): LocationProvider {
  return {
    locate: createIpDatabase(geoipFile),
    findCities: async (cities) => findCities(cities),
  };
}
