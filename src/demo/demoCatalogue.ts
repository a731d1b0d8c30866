import type { Stage } from "./stage.ts";

const hourMs = 3_600_000;

/**
 * The content of Larkfield Gardens besides its homes: specifications, open houses, promotions, testimonials and the
 * rest.
 */
export async function catalogue(stage: Stage): Promise<void> {
  const project_id = stage.id("project gardens");
  const create = (table: string, input: Record<string, unknown>) =>
    stage.create("demo", table, { project_id, ...input });

  await specifications(stage, project_id);
  await openHouses(stage, create);

  await create("promotions", {
    title: "Early move-in credit",
    description: "A credit towards options for homes reserved this season.",
    code: "LARK-25",
    kind: "OPTION_CREDIT",
    amount: "7500",
    starts_at: stage.daysAgo(30),
    ends_at: stage.daysAgo(-60),
    usage_limit: 25,
    terms: "One a home. Not payable in cash.",
  });
  await create("promotions", {
    title: "Winter closing costs",
    kind: "CLOSING_COST_CREDIT",
    percent: "1.5",
    max_amount: "12000",
    starts_at: stage.daysAgo(-75),
    ends_at: stage.daysAgo(-165),
  });
  await create("promotions", {
    title: "Agent bonus, to be agreed",
    kind: "AGENT_BONUS",
    amount: "4000",
    status: "DRAFT",
    public: false,
    starts_at: stage.daysAgo(0),
  });

  for (const [sequence, author, author_title, rating, text, published] of [
    [
      1,
      "Priya N.",
      "Bought a two-bedroom",
      5,
      "They showed us the garden before they showed us the price list.",
      true,
    ],
    [2, "Tom and Ruth", "Moved from a house", 5, "Windows to two sides make all the difference.", true],
    [3, "Leo B.", "First home", 4, "Clear answers, every time. The parking took a while to sort out.", false],
  ] as const)
    await create("project_testimonials", {
      sequence,
      author,
      author_title,
      rating,
      text,
      published,
      published_on: stage.day(-40 * sequence),
      source: "Survey",
    });

  for (const [sequence, title, percent, due_rule, due_offset_days] of [
    [1, "On signing", "5", "ON_SIGNING", null],
    [2, "After 90 days", "5", "DAYS_AFTER_SIGNING", 90],
    [3, "At closing", "10", "ON_CLOSING", null],
  ] as const)
    await create("deposit_schedule_milestones", { sequence, title, percent, due_rule, due_offset_days });

  for (const n of [1, 2, 3])
    await create("lease_permits", { title: `Rental permit ${n}`, number: `LG-R${n}`, price: "2500" });

  await create("trackers", {
    name: "Hoarding on Lark Lane",
    kind: "QR_CODE",
    destination_url: "https://gardens.larkfield.example/register",
    campaign: "Spring",
    utm: { utm_source: "hoarding", utm_medium: "qr" },
  });
  await create("trackers", {
    name: "Newsletter",
    kind: "LINK",
    utm: { utm_source: "newsletter", utm_medium: "email" },
  });

  await stage.create("demo", "project_collections", {
    organization_id: stage.id("developer"),
    title: "Close to the lake",
    description: "Homes within a walk or a short ride of the water.",
    public: true,
    project_ids: [project_id, stage.id("project towns")],
  });

  await stage.as("demo", "select o.id from app_public.update_sales_office($1, $2) o", [
    {
      title: "Larkfield presentation centre",
      address: {
        thoroughfare: "196 Lark Lane",
        locality: "Toronto",
        administrative_area: "ON",
        country: "CA",
      },
      phone: "+1 416 555 0140",
      email: "gardens@larkfield.example",
      notes: "Open Thursday to Sunday, noon to six.",
    },
    project_id,
  ]);
}

/** Category → element → its options: title, tier, price and cost. */
const specs: Record<string, Record<string, [string, "STANDARD" | "UPGRADE", number, number][]>> = {
  Kitchen: {
    Countertop: [
      ["Quartz, light grey", "STANDARD", 0, 3100],
      ["Quartz, waterfall end", "UPGRADE", 4200, 2600],
      ["Soapstone", "UPGRADE", 6900, 4800],
    ],
    Appliances: [
      ["Induction set", "STANDARD", 0, 4900],
      ["Induction set with steam oven", "UPGRADE", 3800, 2700],
    ],
  },
  Floors: {
    "Living spaces": [
      ["Oak, oiled", "STANDARD", 0, 5200],
      ["Oak, herringbone", "UPGRADE", 7400, 5100],
    ],
    Bathrooms: [
      ["Porcelain, sand", "STANDARD", 0, 1400],
      ["Heated porcelain, slate", "UPGRADE", 2900, 1900],
    ],
  },
};

async function specifications(stage: Stage, project_id: string): Promise<void> {
  for (const [c, [title, elements]] of Object.entries(specs).entries()) {
    const category = await stage.create("demo", "spec_categories", { project_id, title, sequence: c + 1 });
    for (const [e, [name, options]] of Object.entries(elements).entries()) {
      const element = await stage.create("demo", "spec_elements", {
        category_id: category.id,
        title: name,
        sequence: e + 1,
        required: true,
        // Kitchen appliances come last.
        lock_phase: title === "Kitchen" ? "INTERIOR_FINISHES" : "DRYWALL",
      });
      for (const [o, [option, tier, price, cost]] of options.entries())
        await stage.create("demo", "spec_options", {
          element_id: element.id,
          title: option,
          tier,
          kind: name === "Appliances" ? "APPLIANCE" : "DESIGN",
          price,
          cost,
          sequence: o + 1,
        });
    }
  }
}

async function openHouses(
  stage: Stage,
  create: (table: string, input: Record<string, unknown>) => Promise<{ id: string }>,
): Promise<void> {
  const times = (daysFromNow: number, hours: number) => {
    const starts_at = stage.daysAgo(-daysFromNow);
    return { starts_at, ends_at: new Date(starts_at.getTime() + hours * hourMs) };
  };
  await create("open_houses", {
    ...times(-14, 4),
    title: "First look",
    host_id: stage.id("mei"),
    capacity: 40,
  });
  await create("open_houses", {
    ...times(5, 4),
    title: "Garden day",
    description: "The model home is open, and so is the garden.",
    host_id: stage.id("mei"),
    capacity: 60,
  });
  await create("open_houses", {
    ...times(9, 1),
    title: "Agents' preview",
    format: "BROKER_PREVIEW",
    host_id: stage.id("amir"),
    rsvp_required: true,
    public: false,
  });
  const { id } = await create("open_houses", { ...times(12, 1), title: "Video tour", format: "VIRTUAL" });
  await stage.as("demo", "select h.id from app_hidden.update_record(null::app_public.open_houses, $1) h", [
    { id, status: "CANCELED" },
  ]);
}
