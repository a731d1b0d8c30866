import { demoUser } from "../../../src/demo/people.ts";
import type { Attack } from "../attack.ts";

const createAccount = "mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }";
const login = "mutation ($input: LoginInput!) { login(input: $input) { tokenType } }";

/** Whoever hashes passwords for strangers still has to hash them for those who sign in. */
export default {
  title: "strangers make accounts, 75 at once, while others sign in",
  async play(world) {
    await Promise.all(
      Array.from({ length: 75 }, () =>
        world.ask(null, createAccount, {
          input: { email: world.freshEmail(), password: "as long as it has to be" },
        }),
      ),
    );
  },
  async bystander(world) {
    const { data, errors } = await world.ask(null, login, {
      input: { username: demoUser.email, password: demoUser.password },
    });
    if (data?.login?.tokenType !== "Bearer") throw new Error(`Not signed in: ${JSON.stringify(errors)}`);
  },
} satisfies Attack;
