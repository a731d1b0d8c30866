/// <reference types="postgraphile" />
/**
 * `nearestCity` takes no arguments: the viewer's location comes from the address of the request. This passes the
 * coordinates to the SQL function.
 */
import { context, get, lambda, type ExecutableStep } from "postgraphile/grafast";
import { TYPES } from "postgraphile/@dataplan/pg";
import type { AnyResource } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NearestCityPlugin: true;
    }
  }
}

/** Location of the viewer, or null. */
export function viewerPlaceStep(): ExecutableStep {
  return lambda(context(), ({ ip, viewerPlace }) => viewerPlace?.(ip) ?? null) as unknown as ExecutableStep;
}

export const NearestCityPlugin: GraphileConfig.Plugin = {
  name: "NearestCityPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, build, { scope }) {
        if (!scope.isRootQuery || scope.fieldName !== "nearestCity") return field;
        const resource = build.pgResources.nearest_city as unknown as AnyResource;
        return {
          ...field,
          args: {},
          plan() {
            const $place = viewerPlaceStep();
            return resource.execute(
              ["latitude", "longitude"].map((name) => ({
                name,
                step: get($place, name),
                pgCodec: TYPES.float,
              })),
            );
          },
        };
      },
    },
  },
};
