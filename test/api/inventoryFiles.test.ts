/**
 * Files of floor plans, lots and units: each kind is uploaded, listed, changed and deleted, and is visible
 * with its record.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { picture } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let file: string;
/** Records of a public project by type: offered ones, and hidden ones. */
const offered: Record<string, string> = {};
const hidden: Record<string, string> = {};

async function create(type: string, input: Record<string, unknown>): Promise<string> {
  const field = `create${type}`;
  const mutation = `mutation ($input: Create${type}Input!) { ${field}(input: $input) { id } }`;
  return (await world.ada.get(mutation, { input }))[field].id;
}

beforeAll(async () => {
  world = await startWorld();
  file = `data:;name=a.png;base64,${(await picture()).toString("base64")}`;
  const projectId = await create("Project", {
    organizationId: world.harbour.id,
    title: "Open",
    currency: "CAD",
    visibility: "PUBLIC",
    status: "SELLING",
  });
  offered.FloorPlan = await create("FloorPlan", { projectId, title: "A", status: "ACTIVE" });
  hidden.FloorPlan = await create("FloorPlan", { projectId, title: "B" });
  for (const [type, input] of [
    ["Lot", { number: "1" }],
    ["Unit", { title: "101" }],
  ] as const) {
    offered[type] = await create(type, { projectId, ...input, price: "100000", status: "AVAILABLE" });
    const [[key, value]] = Object.entries(input) as [[string, string]];
    hidden[type] = await create(type, { projectId, [key]: `${value}-b` });
  }
});
afterAll(() => world.stop());

const kinds: [string, string, string, string, Record<string, unknown>, Record<string, unknown>][] = [
  ["FloorPlanImage", "FloorPlanImage", "FloorPlan", "images", { title: "Kitchen" }, { alt: "A stove" }],
  [
    "ElevationImage",
    "FloorPlanElevationImage",
    "FloorPlan",
    "elevationImages",
    { elevation: "B" },
    { priceDelta: "-2500.50" },
  ],
  [
    "FloorPlanDrawing",
    "FloorPlanDrawing",
    "FloorPlan",
    "drawings",
    { level: -1, mirrored: true },
    { level: 0 },
  ],
  [
    "FloorPlanDocument",
    "FloorPlanDocument",
    "FloorPlan",
    "documents",
    { category: "FLOOR_PLAN", public: true },
    { description: "All sizes" },
  ],
  ["LotImage", "LotImage", "Lot", "images", { title: "View" }, { alt: "A meadow" }],
  ["UnitImage", "UnitImage", "Unit", "images", { constructionStatus: "FRAMING" }, { title: "Frame" }],
];

test.each(kinds)("upload%s", async (name, type, parent, list, given, changed) => {
  const parentField = parent[0]!.toLowerCase() + parent.slice(1);
  const fields = [...Object.keys(given), ...Object.keys(changed)].join(" ");
  const upload = `mutation ($input: Upload${name}Input!) { upload${name}(input: $input) {
    __typename id url filename checksum ${fields} ${parentField} { id } } }`;
  const input = (parentId: string) => ({ [`${parentField}Id`]: parentId, file, ...given });
  const send = async (parentId: string) =>
    (await world.ada.get(upload, { input: input(parentId) }))[`upload${name}`];
  const made = await send(offered[parent]!);
  const inside = await send(hidden[parent]!);
  expect(made).toMatchObject({
    ...given,
    __typename: type,
    filename: "a.png",
    [parentField]: { id: offered[parent] },
  });

  const update = `mutation ($input: Update${name}Input!) { update${name}(input: $input) { ${fields} } }`;
  expect(await world.ada.get(update, { input: { id: made.id, ...changed } })).toEqual({
    [`update${name}`]: { ...given, ...changed },
  });

  const seen = async (person: World["ada"], id: string) => {
    const query = `query ($id: ID!) { ${parentField}(id: $id) { ${list} { id } } }`;
    return (
      (await person.get(query, { id }))[parentField]?.[list].map((row: { id: string }) => row.id) ?? null
    );
  };
  for (const person of [world.max, world.olga, world.anonymous])
    expect(await seen(person, offered[parent]!)).toEqual([made.id]);
  expect(await seen(world.max, hidden[parent]!)).toEqual([inside.id]);
  const byId = `query ($id: ID!) { file: ${type[0]!.toLowerCase()}${type.slice(1)}(id: $id) { url } }`;
  for (const person of [world.olga, world.anonymous])
    expect(await person.get(byId, { id: inside.id })).toEqual({ file: null });

  expect((await world.max.refused(upload, { input: input(offered[parent]!) })).code).toBe("FORBIDDEN");
  expect((await world.olga.refused(upload, { input: input(hidden[parent]!) })).code).toBe("NOT_FOUND");
  expect((await world.anonymous.refused(upload, { input: input(offered[parent]!) })).code).toBe(
    "UNAUTHENTICATED",
  );

  const remove = `mutation ($id: ID!) { delete${name}(input: { id: $id }) { id deleted ${parentField} { id } } }`;
  expect((await world.max.refused(remove, { id: made.id })).code).toBe("FORBIDDEN");
  expect(await world.ada.get(remove, { id: made.id })).toEqual({
    [`delete${name}`]: { id: made.id, deleted: true, [parentField]: { id: offered[parent] } },
  });
  expect(await seen(world.max, offered[parent]!)).toEqual([]);
});
