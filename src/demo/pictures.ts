import { Readable } from "node:stream";
import type { Files } from "../files/files.ts";
import type { FileKindName } from "../providers/files/kinds.ts";
import { exterior, garden, interior, mark, site } from "./drawings.ts";
import type { Stage } from "./stage.ts";

const brochure = `Larkfield Gardens

128 homes around one garden. One to three bedrooms, every home with a balcony or a terrace.
Completion is expected in a year and a half. A reservation holds a home for 72 hours.
`;

/** Pictures, a site plan and a document of the active project, and the logos of the project and its developer. */
export async function pictures(stage: Stage, files: Files): Promise<void> {
  const { default: sharp } = await import("sharp");
  const add = async (table: string, kind: FileKindName, content: Buffer, name: string, input: object) => {
    const file = await files.take(Readable.from([content]), kind, name);
    await stage.create("demo", table, { ...input, file });
  };
  const picture = async (table: string, drawing: Buffer, name: string, input: object) => {
    const content = await sharp(drawing).jpeg({ quality: 82 }).toBuffer();
    await add(table, "storeImage", content, `${name}.jpg`, input);
  };
  const gardens = { project_id: stage.id("project gardens") };
  await picture("organization_avatars", mark("#3f6b52"), "larkfield", {
    organization_id: stage.id("developer"),
    alt: "A lark over a roof",
  });
  await picture("project_avatars", mark("#b4643c"), "gardens", { ...gardens, alt: "A lark over a roof" });
  for (const [drawing, name, title, alt, category] of [
    [exterior("#bcdcf0"), "street", "From Lark Lane", "Eight storeys of brick behind trees", "HERO"],
    [interior(), "living", "A living room", "A sofa beside the door to the balcony", "INTERIOR"],
    [garden(), "garden", "The garden", "The garden from above, with its pond", "AMENITY"],
    [exterior("#f0d3bc"), "evening", "In the evening", "The house in the evening sun", "EXTERIOR"],
  ] as const)
    await picture("project_images", drawing, name, { ...gardens, title, alt, category });
  await picture("site_plans", site(), "site", { ...gardens, title: "The whole site", phase: "1" });
  await add("project_documents", "storeDocument", Buffer.from(brochure), "gardens.txt", {
    ...gardens,
    title: "In short",
    category: "BROCHURE",
    public: true,
  });
  await picture("project_images", exterior("#d5e3d0"), "towns", {
    project_id: stage.id("project towns"),
    title: "By the creek",
    alt: "Brick houses behind trees",
    category: "HERO",
  });
}
