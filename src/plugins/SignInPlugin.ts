/// <reference types="postgraphile" />
/**
 * The result of a mutation that signs in is read as the new user: `login { user { email } }` would otherwise be null,
 * since related records are read in transactions of their own. Functions declare this with the tag `@becomes <result
 * column with the user's id>`.
 *
 * It applies to that field only. The next field of the same request uses the request's token again, so that the order
 * of fields cannot direct a change to another account.
 */
import type { PgResource, PgSelectSingleStep } from "postgraphile/@dataplan/pg";
import { context, sideEffect } from "postgraphile/grafast";
import { replaceSettings, signedInSettings } from "../database/claims.ts";

type Settings = Record<string, string>;

/** Settings of the request's token, for contexts in which somebody has signed in since. */
const before = new WeakMap<object, Settings>();

function actAs(requestContext: Grafast.Context, userId: string | null): void {
  const settings = requestContext.pgSettings as Settings;
  if (userId === null) return;
  before.set(requestContext, { ...settings });
  replaceSettings(settings, signedInSettings(settings, userId));
}

function actAsBefore(requestContext: Grafast.Context): void {
  const settings = before.get(requestContext);
  if (!settings) return;
  before.delete(requestContext);
  replaceSettings(requestContext.pgSettings as Settings, settings);
}

export const SignInPlugin: GraphileConfig.Plugin = {
  name: "SignInPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, build, { scope }) {
        const { plan } = field;
        if (!scope.isRootMutation || !plan) return field;
        const column = becomes(build, scope.fieldName);
        return {
          ...field,
          plan($root, args, info) {
            sideEffect([context()] as const, ([requestContext]) => actAsBefore(requestContext));
            const $answer = plan($root, args, info);
            if (column !== undefined) {
              const $userId = ($answer as unknown as PgSelectSingleStep).get(column);
              sideEffect([context(), $userId] as const, ([requestContext, userId]) =>
                actAs(requestContext, userId as string | null),
              );
            }
            return $answer;
          },
        };
      },
    },
  },
};

/** PERF: called once per mutation. */
const columns = new WeakMap<object, Map<string, string>>();

/** Value of the tag on the function of a mutation; undefined if it signs nobody in. */
function becomes(build: GraphileBuild.Build, fieldName: string): string | undefined {
  let known = columns.get(build.input);
  if (!known) {
    known = new Map();
    for (const { isMutation, extensions } of Object.values(build.pgResources) as PgResource[]) {
      const tag = (extensions?.tags as Record<string, unknown> | undefined)?.becomes;
      if (isMutation && typeof tag === "string")
        known.set(build.inflection.camelCase(extensions?.pg?.name ?? ""), tag);
    }
    columns.set(build.input, known);
  }
  return known.get(fieldName);
}
