import type { Stage } from "./stage.ts";

/** Statuses of the project before its current one. */
const waysTo: Record<string, string[]> = {
  DRAFT: ["DRAFT"],
  COMING_SOON: ["DRAFT", "COMING_SOON"],
  SELLING: ["DRAFT", "COMING_SOON", "PRESALE", "SELLING"],
};

/** Three projects in three phases, their lead sources, and the agency of the active one. */
export async function projects(stage: Stage): Promise<void> {
  await project(stage, "gardens", "SELLING", {
    title: "Larkfield Gardens",
    type: "CONDOMINIUM",
    visibility: "PUBLIC",
    overview_headline: "128 homes around one garden",
    overview:
      "Eight storeys of brick and larch around a garden that stays open to the street. One to three bedrooms, every home with a balcony or a terrace, ten minutes on foot from the lake.",
    design_heading: "Made to be opened",
    design:
      "Windows to two sides in most homes, kitchens that a wall can close off, and storage on every floor.",
    address: {
      thoroughfare: "200 Lark Lane",
      locality: "Toronto",
      administrative_area: "ON",
      postal_code: "M5V 1B2",
      country: "CA",
    },
    currency: "CAD",
    time_zone: "America/Toronto",
    website_url: "https://gardens.larkfield.example",
    amenities: ["Garden", "Gym", "Workshop", "Guest suite", "Bicycle storage"],
    sales_start_date: stage.day(-150),
    completion_date: stage.day(540),
    reservation_fee: "5000.00",
    cancellation_fee: "500.00",
    reservation_expiration: 72,
    rescission_days: 10,
    lead_assignment: "ROUND_ROBIN",
  });
  await project(stage, "towns", "COMING_SOON", {
    title: "Mill Creek Towns",
    type: "TOWNHOME",
    visibility: "PUBLIC",
    overview_headline: "42 townhomes by the creek",
    overview:
      "Three storeys, a door to the street and one to the creek. Registration is open; sales begin next season.",
    address: {
      thoroughfare: "15 Mill Road",
      locality: "Hamilton",
      administrative_area: "ON",
      postal_code: "L8P 4W7",
      country: "CA",
    },
    currency: "CAD",
    time_zone: "America/Toronto",
    amenities: ["Playground", "Creek trail"],
    sales_start_date: stage.day(75),
    completion_date: stage.day(800),
    rescission_days: 10,
  });
  await project(stage, "foundry", "DRAFT", {
    title: "The Foundry Lofts",
    type: "MIXED_USE",
    visibility: "PRIVATE",
    overview: "Lofts in the old foundry, with shops below. Not announced yet.",
    address: { locality: "Guelph", administrative_area: "ON", country: "CA" },
    currency: "CAD",
    time_zone: "America/Toronto",
    lead_assignment: "PRIVATE",
  });

  for (const [key, name, category] of [
    ["gardens", "Site hoarding", "SIGNAGE"],
    ["gardens", "Search ads", "SEARCH_ADS"],
    ["gardens", "Spring open house", "EVENT"],
    ["towns", "Newsletter", "EMAIL"],
  ])
    await stage.create("demo", "lead_sources", { project_id: stage.id(`project ${key}`), name, category });
  await stage.create("demo", "fallout_reasons", {
    project_id: stage.id("project gardens"),
    name: "No home with two parking spaces",
    category: "LAYOUT",
    sequence: 6,
  });

  // No operation affiliates organizations yet.
  await stage.asOwner(
    "insert into app_public.project_organizations (project_id, owner_id, organization_id, role) values ($1, $2, $3, 'SELLER')",
    [stage.id("project gardens"), stage.id("developer"), stage.id("agency")],
  );
}

async function project(
  stage: Stage,
  key: string,
  status: string,
  input: Record<string, unknown>,
): Promise<void> {
  const [first, ...steps] = waysTo[status]!;
  const { id } = await stage.create("demo", "projects", {
    organization_id: stage.id("developer"),
    status: first,
    ...input,
  });
  stage.keep(`project ${key}`, id);
  for (const step of steps)
    await stage.as("demo", "select p.id from app_hidden.update_record(null::app_public.projects, $1) p", [
      { id, status: step },
    ]);
}
