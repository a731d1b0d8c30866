/** `WorkflowExecution.subject`: the purchase or the lead that an execution is about, or that its subject is of. */
import { get, lambda, object, type ExecutableStep } from "postgraphile/grafast";
import { recordTables } from "./tables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LeadOrBuyerPlugin: true;
    }
  }
}

const tables: Record<string, string> = { Lead: "leads", Buyer: "buyers" };

export const LeadOrBuyerPlugin: GraphileConfig.Plugin = {
  name: "LeadOrBuyerPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          const resourceOf = (type: string) =>
            recordTables(build).find((resource) => resource.extensions!.pg!.name === tables[type])!;
          build.registerUnionType(
            "LeadOrBuyer",
            {},
            () => ({
              description: "A lead or a buyer.",
              types: () => Object.keys(tables).map((name) => build.getOutputTypeByName(name) as any),
              planType: ($ids: any) => ({
                $__typename: lambda(get($ids, "buyerId") as ExecutableStep, (buyerId) =>
                  buyerId ? "Buyer" : "Lead",
                ),
                planForType: (type: any) =>
                  resourceOf(type.name).get({
                    id: get($ids, type.name === "Buyer" ? "buyerId" : "leadId") as ExecutableStep,
                  }) as any,
              }),
            }),
            "LeadOrBuyerPlugin",
          );
          return _;
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        if (context.Self.name !== "WorkflowExecution") return fields;
        return build.extend(
          fields,
          {
            subject: context.fieldWithHooks({ fieldName: "subject" } as any, () => ({
              description:
                "The purchase or the lead that it is about, or that its subject is of; null where there is neither, or not the viewer's to see.",
              type: build.getTypeByName("LeadOrBuyer") as any,
              plan: ($execution: any) =>
                object({ leadId: $execution.get("lead_id"), buyerId: $execution.get("buyer_id") }),
            })),
          },
          "LeadOrBuyerPlugin",
        );
      },
    },
  },
};
