/// <reference types="postgraphile" />
/**
 * Queries without a token are answered if the database has public data: if a policy lets plat_anonymous read rows of
 * the table, or the function is granted to that role. All others are refused with UNAUTHENTICATED, without a query,
 * so that a lost token is never mistaken for an empty list. Lists across the portfolio belong to the viewer, unless
 * their table is tagged `@publicRows` too.
 */
import { context, lambda } from "postgraphile/grafast";
import { CodedError } from "../base/errors.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PublicQueriesPlugin: true;
    }
  }
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** Whether a visitor may find rows in the table, or call the function. */
      isPublic?: boolean;
    }
  }
}

const STRANGER = "plat_anonymous";

/** The resource of a query field, if the field does not name it itself. */
const resourceOf = (
  build: GraphileBuild.Build,
  { pgFieldResource, fieldName }: AnyType,
): AnyResource | undefined =>
  pgFieldResource ??
  (Object.values(build.pgResources) as AnyResource[]).find(
    (resource) => resource.parameters && build.inflection.camelCase(resource.name) === fieldName,
  );

function isPublic(build: GraphileBuild.Build, scope: AnyScope): boolean {
  // Covers all tables, some of which are public.
  if (scope.isNodeField) return true;
  const resource = resourceOf(build, scope);
  if (!resource) throw new Error(`Nothing says whether the query ${scope.fieldName} is public.`);
  const { isPublic: open = false, tags } = resource.extensions ?? {};
  if (resource.parameters || scope.isRecordById) return open;
  return open && tags?.publicRows !== undefined;
}

const refuseVisitors =
  (fieldName: string | undefined) =>
  ({ isSignedIn }: Partial<Grafast.Context>): null => {
    if (!isSignedIn)
      throw new CodedError(
        "UNAUTHENTICATED",
        `${fieldName} requires a token: send the header "Authorization: Bearer <token>".`,
      );
    return null;
  };

export const PublicQueriesPlugin: GraphileConfig.Plugin = {
  name: "PublicQueriesPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      async pgTables_PgResourceOptions(info, { serviceName, pgClass, resourceOptions }) {
        const all = await info.helpers.pgIntrospection.getIntrospection();
        const { introspection } = all.find(({ pgService }) => pgService.name === serviceName)!;
        const { _id: table } = pgClass;
        const { _id: stranger } = introspection.roles.find(({ rolname }) => rolname === STRANGER) ?? {};
        const open = introspection.policies.some(
          ({ polrelid, polcmd, polroles }) =>
            polrelid === table &&
            (polcmd === "r" || polcmd === "*") &&
            (polroles ?? []).some((role) => role === "0" || role === stranger),
        );
        resourceOptions.extensions = Object.assign(resourceOptions.extensions ?? Object.create(null), {
          isPublic: open,
        });
      },
      pgProcedures_PgResourceOptions(_info, { pgProc, resourceOptions }) {
        // A function without an access list can be called by everybody.
        const open =
          pgProc.proacl === null ||
          pgProc.getACL().some(({ role, execute }) => execute && (role === STRANGER || role === "public"));
        resourceOptions.extensions = Object.assign(resourceOptions.extensions ?? Object.create(null), {
          isPublic: open,
        });
      },
    },
  },
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        after: ["default"],
        callback(field, build, { scope }) {
          const { plan } = field;
          if (!scope.isRootQuery || !plan || isPublic(build, scope)) return field;
          return {
            ...field,
            plan(...all: Parameters<typeof plan>) {
              const $result = plan(...all);
              const $select = $result.getClassStep?.() ?? $result.getSubplan?.() ?? $result;
              const $check = lambda(context(), refuseVisitors(scope.fieldName));
              $select.apply($check);
              // Fields over all rows of a connection, such as its total count.
              const clone = $select.connectionClone?.bind($select);
              if (clone)
                $select.connectionClone = (...mode: unknown[]) => {
                  const $clone = clone(...mode);
                  $clone.apply($check);
                  return $clone;
                };
              return $result;
            },
          };
        },
      },
    },
  },
};
