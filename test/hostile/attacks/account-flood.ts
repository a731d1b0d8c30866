import { Agent, request } from "node:https";
import { demoUser } from "../../../src/demo/people.ts";
import type { Attack } from "../attack.ts";

const createAccount = "mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }";
const login = JSON.stringify({
  query: "mutation ($input: LoginInput!) { login(input: $input) { tokenType } }",
  variables: { input: { username: demoUser.email, password: demoUser.password } },
});

/** Not the network of the attackers: all of 127/8 is this machine. */
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, localAddress: "127.0.0.9" });

const signIn = (address: string): Promise<string> =>
  new Promise((done, fail) => {
    request(
      `${address}/graphql`,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("error", fail).on("end", () => done(text));
      },
    )
      .on("error", fail)
      .end(login);
  });

let underWay: Promise<string> | undefined;

/** Whoever hashes passwords for strangers still has to hash them for those who sign in, from elsewhere. */
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
    // One at a time, as a person does: ten a second would wait for each other.
    underWay ??= signIn(world.address).finally(() => (underWay = undefined));
    const answer = await underWay;
    if (!answer.includes('"Bearer"')) throw new Error(`Not signed in: ${answer}`);
  },
} satisfies Attack;
