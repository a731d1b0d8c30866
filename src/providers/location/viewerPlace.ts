import type { Pool } from "pg";
import { withinShare } from "../../database/orderedPool.ts";
import type { FairSemaphore } from "../../admission/fairSemaphore.ts";
import { partyOf } from "../../admission/party.ts";
import type { Logger } from "../../base/log.ts";
import type { CityName, LocationProvider, Place } from "./place.ts";

/** The location of the viewer; null if the address cannot be located, or the provider fails. */
export type ViewerPlace = (ip: string | undefined) => Promise<Place | null>;

/**
 * Locates a viewer, after making sure that the cities of projects have locations, so that new projects appear in the next query. Its
 * statements count against the network of the viewer. A provider failure is logged and leaves the location unknown.
 */
export function createViewerPlace(
  pool: Pool,
  provider: LocationProvider,
  log: Pick<Logger, "warn">,
  connections?: FairSemaphore,
): ViewerPlace {
  let placing: Promise<void> | undefined;
  async function place(database: Pick<Pool, "query">, cities: (CityName & { id: string })[]): Promise<void> {
    const places = await provider.findCities(cities);
    const placed = cities.map(({ id }, n) => ({
      id,
      latitude: places[n]?.latitude ?? null,
      longitude: places[n]?.longitude ?? null,
    }));
    await database.query("select app_private.place_cities($1)", [JSON.stringify(placed)]);
  }
  async function placeNewCities(database: Pick<Pool, "query">): Promise<void> {
    for (;;) {
      const { rows } = await database.query<CityName & { id: string }>(
        `select id, name, administrative_area as "administrativeArea", country from app_private.cities_to_look_up()`,
      );
      if (rows.length === 0) return;
      if (!placing) {
        placing = place(database, rows).finally(() => (placing = undefined));
        return placing;
      }
      // A new city causes many concurrent calls, which share one look-up; further cities are detected afterwards.
      await placing;
    }
  }
  return async (ip) => {
    try {
      await placeNewCities(withinShare(pool, connections, partyOf(null, ip)));
      return ip ? await provider.locate(ip) : null;
    } catch (error) {
      log.warn(
        { event: "location.failed", err: error },
        "Determining the location of a viewer failed; it counts as unknown.",
      );
      return null;
    }
  };
}
