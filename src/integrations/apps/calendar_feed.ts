/** The appointments of a user at a secret URL; served by src/http/calendars.ts. */
import { randomBytes } from "node:crypto";
import type { Adapter } from "../adapter.ts";

const adapter: Adapter = {
  async connect({ credentials }, { baseUrl }) {
    const token = (credentials?.["token"] as string | undefined) ?? randomBytes(32).toString("base64url");
    return {
      credentials: { token },
      lookup: token,
      shown: { feedUrl: `${baseUrl}/calendars/${token}.ics` },
    };
  },
};

export default adapter;
