/// <reference types="postgraphile" />
/**
 * A query without a token is answered where the database has something for everybody: where a table has a policy that lets
 * plat_anonymous read rows, or a function is granted to that role. All others are refused with UNAUTHENTICATED, so that a lost
 * token is never an empty list; nothing is asked of the database then. Lists across the portfolio are the viewer's own, unless
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
      /** Whether somebody without a token may find rows in the table, or call the function. */
      isPublic?: boolean;
    }
  }
}

const STRANGER = "plat_anonymous";

/** The resource that a field of the query is of, where the field does not say so itself. */
const resourceOf = (
  build: GraphileBuild.Build,
  { pgFieldResource, fieldName }: AnyType,
): AnyResource | undefined =>
  pgFieldResource ??
  (Object.values(build.pgResources) as AnyResource[]).find(
    (resource) => resource.parameters && build.inflection.camelCase(resource.name) === fieldName,
  );

function isPublic(build: GraphileBuild.Build, scope: AnyScope): boolean {
  // Of all tables, some of which are.
  if (scope.isNodeField) return true;
  const resource = resourceOf(build, scope);
  if (!resource) throw new Error(`Nothing says whether the query ${scope.fieldName} is public.`);
  const { isPublic: open = false, tags } = resource.extensions ?? {};
  if (resource.parameters || scope.isRecordById) return open;
  return open && tags?.publicRows !== undefined;
}

const refuseStrangers =
  (fieldName: string | undefined) =>
  ({ isSignedIn }: Partial<Grafast.Context>): null => {
    if (!isSignedIn)
      throw new CodedError(
        "UNAUTHENTICATED",
        `${fieldName} takes a token: send the header "Authorization: Bearer <token>".`,
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
        // Without a list of its own, a function may be called by everybody.
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
              const $check = lambda(context(), refuseStrangers(scope.fieldName));
              $select.apply($check);
              // What looks at all of a connection, such as its total count.
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
