import type { Person } from "./api.ts";
import { createIn } from "./records.ts";
import type { World } from "./world.ts";

/** Creates a purchase over the API, without a home unless one is given, and returns its id. */
export function createBuyer(
  person: Person,
  project: { id: string },
  input: Record<string, unknown> = {},
): Promise<string> {
  return createIn(person)("createBuyer", {
    projectId: project.id,
    legalName: "Bea Buyer",
    price: "400000.00",
    ...input,
  });
}

/** Makes the user the buyer of a purchase, as accepting an invitation does. */
export async function invite(world: World, buyerId: string, user: Person): Promise<void> {
  await world.owner.query("update app_public.buyers set user_id = $2 where id = $1", [buyerId, user.id]);
}

/** Signs a user up and makes them the buyer of a new purchase in the world's project. */
export async function signUpBuyer(
  world: World,
  name = "Bea Buyer",
): Promise<{ person: Person; purchase: string }> {
  const person = await world.signUp(name);
  const purchase = await createBuyer(world.owen, world.project, { legalName: name });
  await invite(world, purchase, person);
  return { person, purchase };
}
