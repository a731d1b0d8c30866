/// <reference types="postgraphile" />
/**
 * What a signing-in mutation answers is read as the user who has just signed in: `login { user { email } }` would be
 * null otherwise, since the relations of the answer are read in transactions of their own. The functions say so by the
 * tag `@becomes <column of the answer with the user's id>`.
 *
 * It holds for that one field. The next field of the same request acts for the token in use again, so that nobody's
 * change lands in another account by the order of two fields.
 */
import type { PgResource, PgSelectSingleStep } from "postgraphile/@dataplan/pg";
import { context, sideEffect } from "postgraphile/grafast";
import { replaceSettings, signedInSettings } from "../database/claims.ts";

type Settings = Record<string, string>;

/** The settings of the token in use, for contexts in which somebody has signed in since. */
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

/** PERF: asked once per mutation. */
const columns = new WeakMap<object, Map<string, string>>();

/** The value of the tag on the function behind a mutation; undefined for one that signs nobody in. */
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
