/** A point on earth. */
export interface Place {
  /** Degrees north. */
  latitude: number;
  /** Degrees east. */
  longitude: number;
}

/** A city as an address names it. */
export interface CityName {
  name: string;
  /** State or province, by name or code; empty if the address has none. */
  administrativeArea: string;
  /** ISO 3166-1. */
  country: string;
}

/** Locates IP addresses and cities. */
export interface LocationProvider {
  /** The location of an IP address; null if unknown, as for private addresses. */
  locate(ip: string): Promise<Place | null>;
  /** The locations of cities, in the given order; null for unknown ones. */
  findCities(cities: readonly CityName[]): Promise<(Place | null)[]>;
}
