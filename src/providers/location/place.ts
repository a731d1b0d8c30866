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
  /** State or province, by name or code; empty where the address has none. */
  administrativeArea: string;
  /** ISO 3166-1. */
  country: string;
}

/** Knows where things are. */
export interface LocationProvider {
  /** Where requests from an IP address come from; null where nobody knows, as with private addresses. */
  locate(ip: string): Promise<Place | null>;
  /** Where cities lie, in the order given; null for those that are unknown. */
  findCities(cities: readonly CityName[]): Promise<(Place | null)[]>;
}
