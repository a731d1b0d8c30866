import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pino from "pino";
import { createLocationProvider, type LocationProvider } from "../../src/providers/location/index.ts";
import { createViewerPlace } from "../../src/providers/location/viewerPlace.ts";
import { writeCityDatabase } from "../harness/cityDatabase.ts";
import { startApi, type Api, type Person } from "../harness/api.ts";

// The viewer is located by the address that a trusted proxy reports.
const toronto = "128.100.0.1";
const vancouver = "142.103.1.1";
const vancouver6 = "2607:f8f0::1";

let api: Api;
let owner: Person;
let organization: string;
let location: LocationProvider;

beforeAll(async () => {
  const file = join(await mkdtemp(join(tmpdir(), "plat-cities-")), "cities.mmdb");
  await writeCityDatabase(file, {
    // In the formats of the embedded database and of MaxMind's files.
    "128.100.0.0/16": { country_code: "CA", latitude: 43.66, longitude: -79.4 },
    "142.103.0.0/16": { location: { latitude: 49.26, longitude: -123.25, accuracy_radius: 5 } },
    "2607:f8f0::/32": { location: { latitude: 49.26, longitude: -123.25 } },
  });
  location = createLocationProvider({ geoipFile: file });
  api = await startApi(undefined, { trustProxy: ["127.0.0.1"], location });
  owner = await api.signUp("Owen");
  organization = (await owner.get('mutation { createOrganization(input: { name: "Homes" }) { id } }'))
    .createOrganization.id;
});
afterAll(() => api.stop());

const build = async (title: string, address: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  (
    await owner.get(`mutation ($i: CreateProjectInput!) { createProject(input: $i) { id } }`, {
      i: { organizationId: organization, title, visibility: "PUBLIC", address, ...more },
    })
  ).createProject.id as string;

const from = async (ip: string | null, query: string) => {
  const headers: Record<string, string> = ip === null ? {} : { "x-forwarded-for": ip };
  const { data, errors } = await api.anonymous.ask(query, {}, { headers });
  expect(errors).toBeUndefined();
  return data;
};
const nearest = async (ip: string | null) =>
  (
    await from(
      ip,
      `{ nearestCity { id name slug administrativeArea country latitude longitude distanceKm timeZone projectCount resolvedFrom } }`,
    )
  ).nearestCity;

test("without public projects there is no nearest city", async () => {
  expect(await nearest(toronto)).toBeNull();
  await build(
    "Hidden",
    { locality: "Toronto", administrativeArea: "ON", country: "CA" },
    { visibility: "PRIVATE" },
  );
  expect(await nearest(toronto)).toBeNull();
});

test("the nearest city is found by IPv4 and IPv6 addresses", async () => {
  const bay = { locality: "Toronto", administrativeArea: "ON", country: "CA" };
  await build("Bay", bay, { timeZone: "America/Toronto" });
  await build("King", { ...bay, locality: " toronto " }, { timeZone: "America/Toronto" });
  await build("Kits", { locality: "Vancouver", administrativeArea: "BC", country: "CA" });
  const close = await nearest(toronto);
  expect(close).toMatchObject({
    name: "Toronto",
    slug: "toronto-on",
    administrativeArea: "ON",
    country: "CA",
    timeZone: "America/Toronto",
    projectCount: 2,
    resolvedFrom: "IP",
  });
  expect(close.latitude).toBeCloseTo(43.7, 0);
  expect(close.longitude).toBeCloseTo(-79.4, 0);
  expect(close.distanceKm).toBeLessThan(30);
  for (const ip of [vancouver, `::ffff:${vancouver}`, vancouver6])
    expect(await nearest(ip)).toMatchObject({ name: "Vancouver", resolvedFrom: "IP" });
});

test.each([null, "10.1.2.3", "192.168.0.9", "fd00::1", "::1", "fe80::1", "not an address"])(
  "an address without a location (%s) falls back to the city with most public projects",
  async (ip) => {
    expect(await nearest(ip)).toMatchObject({
      name: "Toronto",
      distanceKm: null,
      resolvedFrom: "FALLBACK",
    });
  },
);

test("ignores headers of untrusted proxies", async () => {
  const direct = await startApi(api.database, { trustProxy: false, location });
  try {
    const { data } = await direct.anonymous.ask(
      "{ nearestCity { resolvedFrom } }",
      {},
      {
        headers: { "x-forwarded-for": vancouver },
      },
    );
    expect(data.nearestCity.resolvedFrom).toBe("FALLBACK");
  } finally {
    await direct.stop();
  }
});

test("follows a change of the project's city; an unlocated city is never the nearest", async () => {
  const id = await build("Drift", { locality: "Nowhere at All", country: "CA" });
  const move = (address: Record<string, unknown>) =>
    owner.get(
      `mutation ($id: ID!, $a: AddressInput!) { updateProject(input: { id: $id, address: $a }) { id } }`,
      { id, a: address },
    );
  expect((await nearest(vancouver)).name).toBe("Vancouver");
  await move({ locality: "Burnaby", administrativeArea: "BC" });
  await owner.get(`mutation ($id: ID!) { updateProject(input: { id: $id, visibility: PUBLIC }) { id } }`, {
    id,
  });
  const before = await nearest(vancouver6);
  expect(["Burnaby", "Vancouver"]).toContain(before.name);
  await move({ locality: "Victoria", administrativeArea: "BC" });
  expect((await nearest(vancouver)).name).toBe("Vancouver");
  await owner.get(`mutation ($id: ID!) { deleteProject(input: { id: $id }) { deleted } }`, { id });
});

test("sorts public projects by distance, or by service index if the location is unknown", async () => {
  const titles = async (ip: string | null, sort = "sort: DISTANCE") =>
    (await from(ip, `{ publicProjects(${sort}) { title } }`)).publicProjects.map(
      (project: { title: string }) => project.title,
    );
  await build("Unplaced", {});
  expect(await titles(vancouver)).toEqual(["Kits", "King", "Bay", "Unplaced"]);
  expect((await titles(toronto)).slice(2)).toEqual(["Kits", "Unplaced"]);
  expect(await titles(null)).toEqual(await titles(null, "sort: SERVICE_INDEX"));
});

test("projects are sorted by their distance too, including private and archived ones", async () => {
  const titles = async (ip: string, list: string) => {
    const { data, errors } = await owner.ask(
      `{ ${list} { title } }`,
      {},
      { headers: { "x-forwarded-for": ip } },
    );
    expect(errors).toBeUndefined();
    return data.projects.map((project: { title: string }) => project.title);
  };
  const address = { locality: "Victoria", administrativeArea: "BC", country: "CA" };
  await build("Inner Harbour", address, { visibility: "PRIVATE" });
  const far = await titles(toronto, "projects(sort: DISTANCE)");
  expect(far.slice(0, 3).sort()).toEqual(["Bay", "Hidden", "King"]);
  expect(far.slice(3)).toEqual(["Kits", "Inner Harbour", "Unplaced"]);
  expect(await titles(vancouver, "projects(sort: DISTANCE, first: 2)")).toEqual(["Kits", "Inner Harbour"]);
  expect(await titles(vancouver, "projects(sort: DISTANCE, first: 2, offset: 1)")).toEqual([
    "Inner Harbour",
    far[0],
  ]);
  expect(await titles("10.0.0.1", "projects(sort: DISTANCE)")).toEqual(
    await titles("10.0.0.1", "projects(sort: SERVICE_INDEX)"),
  );
});

test("of many concurrent requests, one looks up new cities, and all responses use the result", async () => {
  const lookUps: string[][] = [];
  const { findCities } = location;
  const viewerPlace = createViewerPlace(
    api.owner,
    {
      locate: async () => ({ latitude: 43.7, longitude: -79.4 }),
      findCities: (cities) => {
        lookUps.push(cities.map(({ name }) => name));
        return findCities(cities);
      },
    },
    pino({ level: "silent" }),
  );
  await build("Citadel", { locality: "Halifax", administrativeArea: "NS", country: "CA" });
  const places = await Promise.all(Array.from({ length: 10 }, () => viewerPlace(toronto)));
  expect(places).toEqual(Array(10).fill({ latitude: 43.7, longitude: -79.4 }));
  expect(lookUps).toEqual([["Halifax"]]);
});
