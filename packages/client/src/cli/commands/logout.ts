import { isPlatError } from "../../index.ts";
import { type Command, text } from "../command.ts";
import { writeProfile } from "../profile.ts";
import { operation } from "../queries.ts";

const LOGOUT = operation<unknown, { input: object }>(
  "mutation ($input: LogoutInput!) { logout(input: $input) { id } }",
);

export const logout: Command = {
  name: "logout",
  summary: "End the session, and forget the token",
  details: "An access token is forgotten but stays valid: revoke it with revokeAccessToken.",
  async run(context) {
    const { env, out, profile } = context;
    try {
      if (profile.url && profile.token) await (await context.connect()).request(LOGOUT, { input: {} });
    } catch (error) {
      // An access token has no session to end, and the session may have ended already.
      if (!isPlatError(error)) throw error;
      if (!["UNAUTHENTICATED", "FORBIDDEN", "BAD_USER_INPUT"].includes(error.code)) throw error;
    }
    await writeProfile(env, text(context, "profile") ?? env["PLAT_PROFILE"] ?? "default", undefined);
    out.note("Signed out.");
  },
};
