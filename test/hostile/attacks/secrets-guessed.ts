import { randomBytes } from "node:crypto";
import type { Attack } from "../attack.ts";

const guess = () => randomBytes(32).toString("base64url");
/** Endpoints without authentication, with invalid secrets. */
const guesses: [query: string, variables: () => Record<string, unknown>][] = [
  [
    "mutation ($input: RefreshSessionInput!) { refreshSession(input: $input) { token } }",
    () => ({ refreshToken: guess() }),
  ],
  [
    "mutation ($input: RequestSigningCodeInput!) { requestSigningCode(input: $input) { signerId } }",
    () => ({ token: guess() }),
  ],
  [
    "mutation ($input: SignAgreementInput!) { signAgreement(input: $input) { signerId } }",
    () => ({ token: guess(), code: "123456", consent: true }),
  ],
  [
    "mutation ($input: ResetPasswordInput!) { resetPassword(input: $input) { __typename } }",
    () => ({ token: guess(), password: "as long as it has to be" }),
  ],
];

let turn = 0;

export default {
  title: "refresh tokens, signing links and codes that are guessed",
  async play(world) {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const [query, variables] = guesses[turn++ % guesses.length]!;
        const answer = await world.ask(null, query, { input: variables() }).catch(() => undefined);
        const code = answer?.errors?.[0]?.extensions.code;
        if (answer && !/^(UNAUTHENTICATED|NOT_FOUND|FORBIDDEN|BAD_USER_INPUT|RATE_LIMITED)$/.test(code))
          throw new Error(JSON.stringify(answer));
        if (
          code === "BAD_USER_INPUT" &&
          /Cannot query|not defined|not provided/.test(answer!.errors![0]!.message)
        )
          throw new Error(answer!.errors![0]!.message);
      }),
    );
  },
} satisfies Attack;
