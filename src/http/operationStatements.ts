/**
 * POST /explorer/sql: executes an operation once, as POST /graphql does and within the same limits, and returns its SQL statements beside its
 * answer. In production, it is for operators of the service.
 */
import type { Request, RequestHandler } from "express";
import { CodedError, signInFirst } from "../base/errors.ts";
import { Trace, type TracedStatement } from "../database/statementTrace.ts";
import { endInChunks } from "./endInChunks.ts";
import { graphql, type GraphqlDeps, type Send } from "./graphqlEndpoint.ts";
import { requestState } from "./requestState.ts";

/** The functions that read plans. */
export interface StatementsDeps {
  /** Whether the sender is signed in as an operator of the service. */
  isOperator(request: Request): Promise<boolean>;
  /** The plan of a statement with the rights of the sender, one line each. The statement is not executed. */
  plan(request: Request, statement: Pick<TracedStatement, "text" | "values">): Promise<string[]>;
}

/** Characters that are returned of a statement, of its values, and of its plan. */
const MOST_CHARACTERS = 20_000;
/** Statements that get a plan. */
const MOST_PLANS = 20;

const cut = (text: string) => (text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS)} …`);

/** Admits everyone outside of production, and in production operators. Decides before anything is executed. */
export const statementReaders =
  ({ isOperator }: StatementsDeps, production: boolean): RequestHandler =>
  async (request, _response, next) => {
    if (!production) return next();
    const state = requestState(request);
    if (!state.claims?.userId) throw signInFirst();
    // Otherwise verified with the first statement of the operation, which is too late here.
    await state.tokenCheck?.complete();
    if (!(await isOperator(request)))
      throw new CodedError(
        "FORBIDDEN",
        "Only operators of the service may do this. The owner of the database appoints operators.",
      );
    next();
  };

/** Values of a statement; undefined if they are too long. */
const shortValues = (values: readonly unknown[]) =>
  JSON.stringify(values).length <= MOST_CHARACTERS ? values : undefined;

/** Executes the operation of a validated request, and answers with `answer`, `statements` and `more`. */
export function operationStatements(endpoint: GraphqlDeps, { plan }: StatementsDeps): RequestHandler {
  return (request, response, next) => {
    const trace = new Trace();
    const state = requestState(request);
    state.trace = trace;
    request.headers.accept = "application/json";
    const hasPlans = request.query["plans"] === "true";
    const takeText: Send = async (_request, _response, work, { text }) => {
      const statements: object[] = [];
      for (const { text: statement, values, ms, rows } of trace.statements) {
        let lines: string[] | undefined;
        // The operation is done: a plan that cannot be made is omitted.
        if (hasPlans && statements.length < MOST_PLANS)
          lines = await plan(request, { text: statement, values }).catch(() => undefined);
        statements.push({
          text: cut(statement),
          // Values of mutations may be secrets that the service has created, such as hashes.
          ...(work.isQuery && { values: shortValues(values) }),
          ms: Math.round(ms * 100) / 100,
          rows,
          ...(lines && { plan: cut(lines.join("\n")) }),
        });
      }
      response.setHeader("Content-Type", "application/json; charset=utf-8");
      response.setHeader("Cache-Control", "no-store");
      await endInChunks(
        response,
        `{"answer":${text},"statements":${JSON.stringify(statements)},"more":${trace.more}}`,
      );
    };
    return graphql({ ...endpoint, tagOf: undefined, takeText })(request, response, next);
  };
}
