import type { Stage } from "./stage.ts";

const plans = {
  wren: {
    title: "Wren",
    code: "W1",
    bedrooms: 1,
    baths: 1,
    sqft: 545,
    balcony_sqft: 60,
    base_price: 548_000,
  },
  lark: {
    title: "Lark",
    code: "L2",
    bedrooms: 2,
    baths: 2,
    sqft: 790,
    balcony_sqft: 85,
    base_price: 739_000,
  },
  heron: {
    title: "Heron",
    code: "H3",
    bedrooms: 3,
    baths: 2,
    half_baths: 1,
    sqft: 1120,
    sqft_max: 1210,
    balcony_sqft: 140,
    base_price: 989_000,
  },
} as const;

const descriptions: Record<keyof typeof plans, string> = {
  wren: "One bedroom behind a sliding wall, a kitchen along one side, and a balcony to the garden.",
  lark: "Two bedrooms apart from each other, with the living room in between and windows to two sides.",
  heron: "Three bedrooms at the corner, a kitchen that a wall can close off, and a terrace.",
};

/** The homes of a floor, starting at the stairs: number, plan, side and view. */
const homes = [
  { plan: "wren", orientation: "N", view: "Street" },
  { plan: "lark", orientation: "NE", view: "Street and park" },
  { plan: "heron", orientation: "SE", view: "Garden and park" },
  { plan: "lark", orientation: "S", view: "Garden" },
  { plan: "wren", orientation: "SW", view: "Garden" },
] as const;

/** Homes that are not for sale, by floor: U unreleased, O off market, H held. Deals are added later. */
const floors = [".....", ".....", ".....", ".....", ".H..O", ".....", "UUUUU", "UUUUU"];

/** The plans and homes of the active project, and the lots of the next one. */
export async function inventory(stage: Stage): Promise<void> {
  const project_id = stage.id("project gardens");
  let sequence = 0;
  for (const [key, plan] of Object.entries(plans)) {
    const { id } = await stage.create("demo", "floor_plans", {
      project_id,
      status: "ACTIVE",
      home_type: "CONDO",
      stories: 1,
      garage: 0,
      hoa_fee: Math.round(plan.sqft * 0.62),
      description: descriptions[key as keyof typeof plans],
      sequence: ++sequence,
      ...plan,
    });
    stage.keep(`plan ${key}`, id);
  }
  for (const [floor, states] of floors.entries())
    for (const [place, home] of homes.entries()) {
      const level = floor + 1;
      const number = `${level}0${place + 1}`;
      const state = states[place]!;
      const plan = plans[home.plan];
      const { id } = await stage.create("demo", "units", {
        project_id,
        floor_plan_id: stage.id(`plan ${home.plan}`),
        title: `${plan.title} ${number}`,
        number,
        building: "Garden House",
        level,
        phase: level <= 6 ? "1" : "2",
        // The top floor has the larger variant. Corner homes and higher floors cost more.
        ...(home.plan === "heron" && level === 8 ? { sqft: plans.heron.sqft_max } : {}),
        ...(home.plan === "lark" && place === 1 ? { orientation: "NE" } : { orientation: home.orientation }),
        view: home.view,
        price: plan.base_price + level * 6_500 + (home.view.startsWith("Garden") ? 12_000 : 0),
        status: state === "U" ? "UNRELEASED" : "AVAILABLE",
        is_accessible: level === 1,
        model: number === "105",
        construction_status: level <= 3 ? "DRYWALL" : "FRAMING",
        estimated_delivery_date: stage.day(level <= 6 ? 420 : 540),
        ...(state === "U" ? {} : { listing_date: stage.day(-150) }),
      });
      stage.keep(`unit ${number}`, id);
      if (state === "O")
        await stage.as("demo", "select u.id from app_hidden.update_record(null::app_public.units, $1) u", [
          { id, status: "OFF_MARKET" },
        ]);
      if (state === "H") await hold(stage, "unit", id);
    }
  await lots(stage);
}

/** Holds a unit or lot until tomorrow. */
async function hold(stage: Stage, what: "unit" | "lot", id: string): Promise<void> {
  await stage.create("demo", "unit_holds", { [`${what}_id`]: id, expiration: 20 });
}

/** Ten lots along the creek: the first ones are offered, one is held. */
async function lots(stage: Stage): Promise<void> {
  const project_id = stage.id("project towns");
  for (let number = 1; number <= 10; number++) {
    const features =
      number === 1 || number === 10 ? ["CORNER"] : number >= 7 ? ["WOODED", "WALKOUT"] : ["FLAT"];
    const { id } = await stage.create("demo", "lots", {
      project_id,
      number: String(number),
      block: number <= 6 ? "A" : "B",
      phase: "1",
      status: number <= 4 ? "AVAILABLE" : number === 5 ? "OFF_MARKET" : "UNRELEASED",
      price: 265_000 + number * 4_000,
      premium: features.includes("FLAT") ? null : 18_000,
      area_sqft: 2_100 + (features.includes("CORNER") ? 600 : 0),
      orientation: number <= 6 ? "S" : "W",
      features,
      parcel_number: `17-204-${String(number).padStart(3, "0")}`,
      address: {
        thoroughfare: `${13 + number * 2} Mill Road`,
        locality: "Hamilton",
        administrative_area: "ON",
      },
    });
    stage.keep(`lot ${number}`, id);
  }
  await hold(stage, "lot", stage.id("lot 2"));
}
