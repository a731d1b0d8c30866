import { demoUser } from "../../../src/demo/people.ts";
import type { Attack } from "../attack.ts";

const createAccount = "mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }";
const login = JSON.stringify({
  query: "mutation ($input: LoginInput!) { login(input: $input) { tokenType } }",
  variables: { input: { username: demoUser.email, password: demoUser.password } },
});

const headers = { "content-type": "application/json" };

let underWay: Promise<string> | undefined;

/** Hashing passwords for sign-ups must not delay sign-ins from other networks. */
export default {
  title: "strangers make accounts, 10 at once each, while others sign in",
  async play(world) {
    await Promise.all(
      Array.from({ length: 10 }, () =>
        world
          .ask(null, createAccount, {
            input: { email: world.freshEmail(), password: "as long as it has to be" },
          })
          .catch(() => {}),
      ),
    );
  },
  async bystander(world) {
    // One at a time, like a person; ten per second would wait for each other.
    underWay ??= world
      .request("/graphql", { method: "POST", headers, body: login })
      .then(({ text }) => text)
      .finally(() => (underWay = undefined));
    const answer = await underWay;
    if (!answer.includes('"Bearer"')) throw new Error(`Not signed in: ${answer}`);
  },
} satisfies Attack;
