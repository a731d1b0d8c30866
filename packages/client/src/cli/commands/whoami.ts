import type { Command } from "../command.ts";
import { ORGANIZATIONS } from "../queries.ts";

export const whoami: Command = {
  name: "whoami",
  summary: "Show who is signed in, and their organizations",
  async run({ connect, out, profile }) {
    const { viewer } = await (await connect()).request(ORGANIZATIONS);
    if (out.json) return out.data({ url: profile.url, organization: profile.organization ?? null, viewer });
    out.line(
      `${viewer?.fullName} (${viewer?.username}) at ${profile.url}${viewer?.isOperator ? ", operator" : ""}`,
    );
    for (const { role, organization } of viewer?.organizations ?? [])
      if (organization)
        out.line(
          `${organization.slug === profile.organization ? "*" : " "} ${organization.slug}  ${role}  ${organization.name}`,
        );
  },
};
