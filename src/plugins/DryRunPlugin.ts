/**
 * Executes a mutation with `dryRun: true` in a transaction that is rolled back, see src/operations/dryRun.ts;
 * likewise any mutation for which the transport determines how its transaction ends.
 */
import { GraphQLError } from "postgraphile/graphql";
import { workOf } from "../admission/operationWork.ts";
import { CodedError, signInFirst } from "../base/errors.ts";
import { DryRun, type DryRunFindings } from "../database/dryRunTransaction.ts";
import type { OperationTransaction } from "../database/operationTransaction.ts";
import type { ReviewedEvents } from "../database/reviewedTransaction.ts";
import { effectsOf, type EvaluateConditions } from "../operations/effects.ts";
import { isDryRun } from "../operations/dryRun.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      DryRunPlugin: true;
    }
    interface PlatOptions {
      /** Determines for which subjects the conditions of workflows are met. */
      evaluateConditions?: EvaluateConditions | undefined;
    }
  }
}

const refusal = ({ message, code, extensions }: CodedError) => ({
  errors: [new GraphQLError(message, { extensions: { ...extensions, code } })],
});

const inPieces = () =>
  new CodedError("BAD_USER_INPUT", "A dry run returns a single response: omit @defer and @stream.");

export const DryRunPlugin: GraphileConfig.Plugin = {
  name: "DryRunPlugin",
  version: "1.0.0",
  grafast: {
    middleware: {
      async execute(next, { args }) {
        const { schema, document, operationName, variableValues } = args;
        const { isSignedIn, pgSettings } = args.contextValue as Grafast.Context;
        const work = workOf(pgSettings);
        const given = work?.heldTransaction as
          OperationTransaction<DryRunFindings | ReviewedEvents> | undefined;
        try {
          if (!given && !isDryRun(schema, document, operationName, variableValues ?? {})) return await next();
          if (!isSignedIn) throw signInFirst();
          if (!work) throw new Error("A dry run has to come as a request.");
          const held = given ?? new DryRun(work);
          work.heldTransaction = held;
          try {
            const result = await next();
            if (Symbol.asyncIterator in result) throw inPieces();
            const findings = await held.end((result.errors?.length ?? 0) > 0);
            const { evaluateConditions } = args.resolvedPreset?.plat ?? {};
            const effects = findings && (await effectsOf(findings, evaluateConditions));
            return { ...result, extensions: { ...result.extensions, ...(effects && { effects }) } };
          } finally {
            await held.end();
            work.heldTransaction = undefined;
          }
        } catch (error) {
          if (error instanceof CodedError) return refusal(error);
          throw error;
        }
      },
    },
  },
};
