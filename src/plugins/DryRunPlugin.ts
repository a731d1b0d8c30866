/** Carries out a mutation with `dryRun: true` in a transaction that is rolled back; see src/operations/dryRun.ts. */
import { GraphQLError } from "postgraphile/graphql";
import { workOf } from "../admission/operationWork.ts";
import { CodedError, signInFirst } from "../base/errors.ts";
import { DryRun } from "../database/dryRun.ts";
import { effectsOf, type EvaluateConditions } from "../operations/effects.ts";
import { isDryRun } from "../operations/dryRun.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      DryRunPlugin: true;
    }
    interface PlatOptions {
      /** Finds out for which subjects the conditions of workflows hold. */
      evaluateConditions?: EvaluateConditions | undefined;
    }
  }
}

const refusal = ({ message, code, extensions }: CodedError) => ({
  errors: [new GraphQLError(message, { extensions: { ...extensions, code } })],
});

export const DryRunPlugin: GraphileConfig.Plugin = {
  name: "DryRunPlugin",
  version: "1.0.0",
  grafast: {
    middleware: {
      async execute(next, { args }) {
        const { schema, document, operationName, variableValues } = args;
        const { isSignedIn, pgSettings } = args.contextValue as Grafast.Context;
        const work = workOf(pgSettings);
        try {
          if (!isDryRun(schema, document, operationName, variableValues ?? {})) return await next();
          if (!isSignedIn) throw signInFirst();
          if (!work) throw new Error("A dry run has to come as a request.");
        } catch (error) {
          if (error instanceof CodedError) return refusal(error);
          throw error;
        }
        const dryRun = new DryRun(work);
        work.heldTransaction = dryRun;
        try {
          const result = await next();
          if (Symbol.asyncIterator in result)
            return refusal(
              new CodedError(
                "BAD_USER_INPUT",
                "The answer of a dry run comes in one piece: leave out @defer and @stream.",
              ),
            );
          const findings = await dryRun.end();
          const { evaluateConditions } = args.resolvedPreset?.plat ?? {};
          const effects = findings && (await effectsOf(findings, evaluateConditions));
          return { ...result, extensions: { ...result.extensions, ...(effects && { effects }) } };
        } finally {
          await dryRun.end();
          work.heldTransaction = undefined;
        }
      },
    },
  },
};
