import { totpCode, totpStep } from "../../src/auth/totp.ts";
import type { Api, Person } from "./api.ts";
import { mutationOf } from "./records.ts";
import { password } from "./signUp.ts";

/** An authenticator app, and the recovery codes of the account. */
export interface Authenticator {
  secret: string;
  recoveryCodes: string[];
  /** An unused code: each call makes the account forget the last accepted one, as 30 seconds would. */
  next(): Promise<string>;
}

/** The code that the app shows now. @param drift in steps of 30 seconds */
export const codeOf = (secret: string, drift = 0): string => totpCode(secret, totpStep() + drift);

/** Gives an account a second factor over the API. */
export async function enrolled(api: Api, person: Person): Promise<Authenticator> {
  const { enrollSecondFactor: made } = await person.get(mutationOf("enrollSecondFactor", "{ secret }"), {
    input: { password },
  });
  const secret: string = made.secret;
  const { confirmSecondFactor: confirmed } = await person.get(
    mutationOf("confirmSecondFactor", "{ codes }"),
    {
      input: { code: codeOf(secret) },
    },
  );
  return {
    secret,
    recoveryCodes: confirmed.codes,
    async next() {
      await api.owner.query("update app_private.second_factors set last_step = null where user_id = $1", [
        person.id,
      ]);
      return codeOf(secret);
    },
  };
}
