import type { execute } from "postgraphile/grafast";
import {
  type ASTVisitor,
  type DocumentNode,
  getOperationAST,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  parse,
  Source,
  specifiedRules,
  validate,
  type ValidationContext,
  type ValidationRule,
} from "postgraphile/graphql";
import { PgSelectStep } from "postgraphile/@dataplan/pg";
import type { CompiledQuery, MismatchListener, Recording } from "../../compiled/compiledQueries.ts";
import type { SelectResult } from "../../compiled/answerWriter.ts";
import { answerText, WrittenJson } from "../answerText.ts";
import type { GraphQLRequest } from "../graphqlRequest.ts";
import { findRequestState } from "../requestState.ts";
import {
  INTROSPECTION_HOLD_MS,
  introspections as introspectionQueries,
  LARGE_COST,
  largeOperations,
} from "../../admission/semaphores.ts";
import { asksForSchema, introspect } from "../../limits/introspection.ts";
import { Documents, KnownDocument, PLANS_PER_OPERATION } from "../../compiled/knownDocuments.ts";
import { eventLoop } from "../../admission/eventLoop.ts";
import { hasFragmentCycle, limitExceeded, measureDocument } from "../../limits/measureDocument.ts";
import { defaultPages, fullPages } from "../../limits/defaultPages.ts";
import { operationCost } from "../../limits/operationCost.ts";
import { OperationWork } from "../../admission/operationWork.ts";
import { partyOf } from "../../admission/party.ts";
import { type PlanMeasure, planningSteps } from "../../limits/planningSteps.ts";
import { planInTime } from "../../limits/planningTime.ts";
import { type QueryLimit, queryLimits } from "../../admission/queryLimits.ts";
import { scanTokens } from "../../limits/scanTokens.ts";

declare global {
  namespace GraphileConfig {
    interface PlatOptions {
      /** Maximum memory for cached documents with their plans, in bytes. */
      documentBytes?: number | undefined;
      /**
       * Milliseconds for which other introspection queries wait after one was answered. Default:
       * INTROSPECTION_HOLD_MS.
       */
      introspectionHoldMs?: number | undefined;
      /**
       * Whether queries are recorded and compared from their first execution, instead of after repeated ones; see
       * src/compiled.
       */
      compileAtOnce?: boolean | undefined;
      /** Called if a compiled query returns a different result than its plan. */
      onMismatch?: MismatchListener | undefined;
    }
  }
}

type Args = Parameters<typeof execute>[0];

const mostly = (part: readonly string[]) => (part.length > 0 ? `, most of it in ${part.join(".")}` : "");

const sentences: Record<
  Exclude<QueryLimit, "bytes">,
  (found: number | undefined, part: readonly string[]) => string
> = {
  tokens: () => `An operation may have ${queryLimits.tokens} tokens at most.`,
  nesting: () => `Braces may be nested ${queryLimits.nesting} levels deep at most.`,
  characters: () =>
    `The document may have ${queryLimits.characters} characters at most. Send large values as variables.`,
  depth: (found) => `An operation may be ${queryLimits.depth} levels deep at most; this one has ${found}.`,
  introspectionDepth: (found) =>
    `Introspection may be ${queryLimits.introspectionDepth} levels deep at most; this one has ${found}.`,
  aliases: (found) => `An operation may have ${queryLimits.aliases} aliases at most; this one has ${found}.`,
  directives: (found) =>
    `An operation may have ${queryLimits.directives} directives at most; this one has ${found}.`,
  selections: (found) =>
    `An operation may select ${queryLimits.selections} fields at most, fragments expanded; this one has ${found}.`,
  planning: (found, part) =>
    `An operation may take ${queryLimits.planning} steps to plan at most, about one for each field and twelve for each record or list; this one takes ${found}${mostly(part)}. Send it as several operations.`,
  cost: (found, part) =>
    `An operation may cost ${queryLimits.cost} at most, about one for each value that is expected; this one costs ${found}${mostly(part)}. Ask for fewer records with first, or for fewer fields.`,
};

function exceeded(
  limit: Exclude<QueryLimit, "bytes">,
  found?: number,
  part: readonly string[] = [],
): GraphQLError {
  const measured = found === undefined ? {} : { [limit]: found };
  return new GraphQLError(sentences[limit](found, part), {
    extensions: {
      code: "LIMIT_EXCEEDED",
      limit: queryLimits[limit],
      ...measured,
      ...(part.length > 0 && { part: part.join(".") }),
    },
  });
}

/** By operation; a document belongs to one schema. */
const measures = new WeakMap<OperationDefinitionNode, PlanMeasure>();

/** Measurements of validation are reused for execution. */
function measureOnce(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): PlanMeasure {
  const measure = measures.get(operation) ?? planningSteps(schema, document, operation);
  measures.set(operation, measure);
  return measure;
}

/**
 * Throws instead of reporting, and does so in its constructor: other rules, some of which are quadratic in the size
 * of the document, then never run.
 */
function QueryLimitsRule(context: ValidationContext): ASTVisitor {
  const document = context.getDocument();
  const measure = measureDocument(document);
  const limit = limitExceeded(measure);
  if (limit) throw exceeded(limit, measure[limit]);
  if (hasFragmentCycle(document)) return {};
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const { steps } = measureOnce(context.getSchema(), document, definition);
    if (steps.total > queryLimits.planning) throw exceeded("planning", steps.total, steps.part);
  }
  return {};
}

function read(text: string, schema: GraphQLSchema, rules: readonly ValidationRule[]): KnownDocument {
  const limit = scanTokens(text);
  if (limit) return new KnownDocument(text, { errors: [exceeded(limit)] });
  try {
    const document = parse(new Source(text, "GraphQL HTTP Request"));
    const errors = validate(schema, document, rules);
    return new KnownDocument(text, errors.length > 0 ? { errors } : { document });
  } catch (error) {
    if (error instanceof GraphQLError) return new KnownDocument(text, { errors: [error] });
    throw error;
  }
}

/** Errors and cost of a document, without executing it. */
export function checkDocument(
  schema: GraphQLSchema,
  text: string,
  variables: Record<string, unknown> = {},
): {
  valid: boolean;
  errors: { message: string; code?: unknown; locations?: unknown }[];
  cost?: { requested: number; limit: number };
} {
  const { result } = read(text, schema, [QueryLimitsRule, ...specifiedRules]);
  if ("errors" in result)
    return {
      valid: false,
      errors: result.errors.map(({ message, extensions, locations }) => ({
        message,
        code: extensions["code"] ?? "BAD_USER_INPUT",
        locations,
      })),
    };
  const { total, part } = operationCost(schema, result.document, undefined, variables);
  const cost = { requested: total, limit: queryLimits.cost };
  if (total <= queryLimits.cost) return { valid: true, errors: [], cost };
  const { message, extensions } = exceeded("cost", total, part);
  return { valid: false, errors: [{ message, code: extensions["code"] }], cost };
}

/** Cached data about the documents of a schema. Plans and documents belong to one schema. */
interface SchemaDocuments {
  readonly documents: Documents;
  readonly byNode: WeakMap<DocumentNode, KnownDocument>;
}
const bySchema = new WeakMap<GraphQLSchema, SchemaDocuments>();

function documentsOf(schema: GraphQLSchema, bytes: number): SchemaDocuments {
  const known = bySchema.get(schema) ?? { documents: new Documents(bytes), byNode: new WeakMap() };
  bySchema.set(schema, known);
  return known;
}

/** Cached data about the documents of a schema; see Documents. */
export function documentCache(schema: GraphQLSchema): Documents["size"] {
  return bySchema.get(schema)?.documents.size ?? { bytes: 0, documents: 0 };
}

/** A cached document; undefined if it is not cached, or was evicted. */
export function cachedDocument(schema: GraphQLSchema, text: string): KnownDocument | undefined {
  return bySchema.get(schema)?.documents.peek(text);
}

/** The compiled form of a query; undefined if it must be planned or its plan executed. */
export function findCompiled(
  schema: GraphQLSchema,
  { query, operationName, variables }: Pick<GraphQLRequest, "query" | "operationName" | "variables">,
  isSignedIn: boolean,
): CompiledQuery | undefined {
  const known = bySchema.get(schema)?.documents.find(query);
  const found = known?.compiled(operationName ?? "")?.find(variables ?? {}, isSignedIn);
  if (found) documentLookups.hits += 1;
  return found;
}

/** By operation context. */
const recordings = new WeakMap<object, Recording>();
/** Cache hits and misses of documents, and compiled queries, in this process. */
export const documentLookups = { hits: 0, misses: 0, compiled: 0 };

/** Execution refuses a document without the requested operation. */
const nothing: PlanMeasure = { steps: { total: 0, part: [] }, copies: 1, introspections: 0 };

const nameOf = (args: Pick<Args, "operationName">) => args.operationName ?? "";

function measureOf({ schema, document, operationName }: Args): PlanMeasure {
  const operation = getOperationAST(document, operationName);
  return operation ? measureOnce(schema, document, operation) : nothing;
}

/**
 * grafast caches plans by number of operations, although an operation may take kilobytes or megabytes, and cannot
 * evict a single one. In a WeakMap they live as long as their document, which `Documents` caches by weight.
 */
function keepPlansWithDocuments(schema: GraphQLSchema, operation: OperationDefinitionNode | undefined): void {
  const grafast = schema.extensions.grafast as Record<PropertyKey, unknown> | undefined;
  if (!grafast) return;
  grafast.operationOperationPlansCacheMaxLength = PLANS_PER_OPERATION;
  const cache = Object.getOwnPropertySymbols(grafast).find(
    ({ description }) => description === "cacheByOperation",
  );
  if (!cache || grafast[cache] instanceof WeakMap) return;
  const before = grafast[cache] as Pick<WeakMap<object, unknown>, "get">;
  const plans = new WeakMap();
  // It contains the first plan, which would be built again.
  if (operation) plans.set(operation, before.get(operation));
  grafast[cache] = plans;
}

/** Whether an operation only queries the schema, without variables, so that its response is constant. */
function isConstant(document: DocumentNode): boolean {
  const [operation, ...others] = document.definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION || operation.variableDefinitions?.length) return false;
  const isSchema = operation.selectionSet.selections.every(
    (selection) => selection.kind === Kind.FIELD && selection.name.value.startsWith("__"),
  );
  return isSchema && others.every(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
}

const schemaAlone = "Query the schema in a separate operation, without data fields.";
const badInput = { code: "BAD_USER_INPUT" };

/** The full schema is a large response in any case. */
const INTROSPECTION_COST = 50_000;

/** Executes an operation within its limits. CPU-heavy parts are scheduled. */
async function executeWithin(
  args: Args,
  work: OperationWork,
  { documents, byNode }: SchemaDocuments,
  {
    introspectionHoldMs = INTROSPECTION_HOLD_MS,
    compileAtOnce = false,
    onMismatch: mismatch,
  }: GraphileConfig.PlatOptions,
  run: typeof execute,
): Promise<Awaited<ReturnType<typeof execute>>> {
  const known = byNode.get(args.document);
  const answer = known?.answers.get(nameOf(args));
  if (answer) {
    work.measured(INTROSPECTION_COST, [], 1);
    work.tellsSchema = true;
    return { ...answer };
  }
  const { schema, document, operationName, variableValues } = args;
  const { steps, copies, introspections } = measureOf(args);
  const { total, part } = operationCost(schema, document, operationName, variableValues ?? {});
  const requested = total + introspections * INTROSPECTION_COST;
  if (requested > queryLimits.cost) return { errors: [exceeded("cost", requested, part)] };
  const type = getOperationAST(document, operationName)?.operation;
  const isMutation = type === "mutation";
  work.measured(requested, part, copies, isMutation);
  work.isQuery = type === "query";
  if (requested > LARGE_COST) work.holds(await largeOperations.acquire(work.party));
  const schemaPart = introspections > 0 ? asksForSchema(document, operationName) : "no";
  if (schemaPart === "with data")
    return { errors: [new GraphQLError(schemaAlone, { extensions: badInput })] };
  const compiled =
    introspections === 0 && !isMutation ? known?.compiled(nameOf(args), compileAtOnce) : undefined;
  const { isSignedIn } = args.contextValue as Grafast.Context;
  const recording = requested < LARGE_COST ? compiled?.record(variableValues ?? {}, isSignedIn) : undefined;
  if (recording) {
    work.recording = recording;
    args.contextValue = recording.watch(args.contextValue as object) as typeof args.contextValue;
    recordings.set(args.contextValue as object, recording);
  }
  let result: Awaited<ReturnType<typeof execute>>;
  if (schemaPart === "alone") {
    work.tellsSchema = true;
    // An introspection query with variables has no cached response.
    const release = await introspectionQueries.acquire(work.party);
    try {
      result = await introspect(args, work.party);
    } finally {
      setTimeout(release, introspectionHoldMs).unref();
    }
  } else {
    // A promise inside of an object is not awaited: the work item ends when the plan is there.
    const plan = () => ({ running: run(args) });
    const isShort = known?.isPlanned(nameOf(args), variableValues ?? {}) && !work.hasLargeInput;
    const { running } = isShort ? plan() : await eventLoop.run(work.party, plan);
    known?.usedPlan(nameOf(args), variableValues ?? {});
    result = await running;
  }
  if (Symbol.asyncIterator in result) return result;
  const pages = defaultPages(schema, document, operationName);
  const full = fullPages(result.data, pages, variableValues ?? {});
  if (known && compiled && recording && result.data && !result.errors) {
    const measured = { cost: requested, part, copies, planning: steps.total };
    const { data } = result;
    const bytes = compiled.take(recording, {
      variables: variableValues ?? {},
      isSignedIn,
      data,
      measured,
      pages,
      mismatch,
    });
    if (bytes > 0) documentLookups.compiled += 1;
    known.keepCompiled(bytes);
    documents.weigh(known);
  }
  const extensions = {
    ...result.extensions,
    cost: {
      requested,
      limit: queryLimits.cost,
      planning: { requested: steps.total, limit: queryLimits.planning },
      bytes: { read: work.bytesRead, limit: queryLimits.bytes },
    },
    ...(full.length > 0 && { fullPages: full }),
  };
  const text =
    known && introspections > 0 && !result.errors && isConstant(document)
      ? await answerText(result.data ?? {}, queryLimits.bytes)
      : undefined;
  if (!known || text === undefined) return { ...result, extensions };
  const complete = { ...result, data: new WrittenJson(text) as never, extensions };
  known.keepAnswer(nameOf(args), complete, text.length);
  documents.weigh(known);
  return complete;
}

/**
 * Limits the work of one operation before anything is planned: the planner expands fragments, so a document of 940
 * bytes could otherwise occupy it for minutes. New documents are parsed and planned within the share of the event
 * loop and cached with their plans up to a total weight. Reports the cost in `extensions.cost` of each response.
 */
export const QueryLimitsPlugin: GraphileConfig.Plugin = {
  name: "QueryLimitsPlugin",
  description:
    "Refuses operations over the limits on tokens, depth, aliases, directives, selections, planning and cost",
  grafserv: {
    middleware: {
      setPreset(next, event) {
        const rules = [QueryLimitsRule, ...event.validationRules];
        const options = event.resolvedPreset.plat ?? {};
        const { documentBytes: bytes = DOCUMENT_BYTES } = options;
        const inner = event.getExecutionConfig;
        event.getExecutionConfig = async function (requestContext) {
          const config = await inner.call(this, requestContext);
          const request = requestContext.expressv4?.req;
          const text = (request?.body as { query?: unknown } | undefined)?.query;
          const work = findRequestState(request)?.work ?? new OperationWork(partyOf(null, undefined));
          const known = documentsOf(config.schema, bytes);
          const { documents, byNode } = known;
          const lookUp = (query: string): KnownDocument => {
            const found = documents.find(query);
            if (found) return found;
            const document = read(query, config.schema, rules);
            if ("document" in document.result) byNode.set(document.result.document, document);
            documents.keep(document);
            return document;
          };
          let document: KnownDocument | undefined;
          if (typeof text === "string") {
            document = documents.find(text);
            if (document) documentLookups.hits += 1;
            else documentLookups.misses += 1;
            document ??= await eventLoop.run(work.party, () => lookUp(text));
          }
          return {
            ...config,
            parseAndValidate: (query) => (query === document?.text ? document : lookUp(query)).result,
            execute: ((args: Args) =>
              executeWithin(args, work, known, options, config.execute)) as typeof config.execute,
          };
        };
        return next();
      },
    },
  },
  grafast: {
    middleware: {
      executeStep(next, { args, step }) {
        const result = next();
        if (!(step instanceof PgSelectStep)) return result;
        const recording = recordings.get(args.contextValue as object);
        if (!recording) return result;
        return Promise.resolve(result).then(async (results) => {
          for (const one of results) recording.selected(step, (await one) as SelectResult);
          return results;
        });
      },
      establishOperationPlan(next, event) {
        const { schema, args } = event;
        const plan = planInTime(next, event);
        keepPlansWithDocuments(schema, getOperationAST(args.document, args.operationName) ?? undefined);
        const { documents, byNode } = bySchema.get(schema) ?? {};
        const known = byNode?.get(args.document);
        if (known && documents) {
          known.addPlan(nameOf(args as Args), plan, measureOf(args as Args).steps.total);
          documents.weigh(known);
        }
        return plan;
      },
    },
  },
};

/** Default of the preset. */
const DOCUMENT_BYTES = 32_000_000;
