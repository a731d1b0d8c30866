/** `WorkflowExecution.subject`: the purchase or lead that an execution is about, or that its subject belongs to. */
import { lambda } from "postgraphile/grafast";
import { recordUnion } from "../schema/recordUnion.ts";
import type { AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LeadOrBuyerPlugin: true;
    }
  }
}

export const LeadOrBuyerPlugin: GraphileConfig.Plugin = {
  name: "LeadOrBuyerPlugin",
  version: "1.0.0",
  schema: {
    hooks: recordUnion("LeadOrBuyerPlugin", {
      name: "LeadOrBuyer",
      description: "The lead or the buyer that a record refers to.",
      field: {
        of: "WorkflowExecution",
        name: "subject",
        description:
          "The purchase or lead that the subject is, or belongs to; null if there is neither or the viewer may not see it.",
      },
      tables: ({ pgResources }) =>
        new Map([
          ["Lead", pgResources.leads as unknown as AnyResource],
          ["Buyer", pgResources.buyers as unknown as AnyResource],
        ]),
      record($execution) {
        const $buyer = $execution.get("buyer_id");
        return {
          type: lambda($buyer, (buyer) => (buyer ? "Buyer" : "Lead")),
          id: lambda([$buyer, $execution.get("lead_id")], ([buyer, lead]) => buyer ?? lead),
        };
      },
    }),
  },
};
