/**
 * Compiled queries: answers without planning or executing a plan again. Most queries are one statement whose text is always the same, or a
 * few that do not depend on each other, and whose rows become the answer in the same way. So an execution of the plan is recorded: its
 * statements, the origin of their parameters, and the writer of the answer. After two executions agree, and the writer has produced the
 * plan's answer byte for byte, the next ones bind their parameters, send the statements and write the rows. An id that was the same in both
 * executions might be a constant of the statements: the compiled query then only serves that id, until an execution with another one agrees
 * too.
 *
 * A compiled query depends on the document, on whether the viewer is signed in, and on the values of all variables except ids: never on a
 * viewer. An execution that read anything about the viewer is not recorded. The database decides permissions, as always, by the settings
 * that are sent with each statement.
 */
import { PgSelectStep } from "postgraphile/@dataplan/pg";
import type { OperationPlan, Step } from "postgraphile/grafast";
import {
  type DocumentNode,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  type TypeNode,
} from "postgraphile/graphql";
import type { DefaultPage } from "../limits/defaultPages.ts";
import type { SentStatement, StatementRecorder } from "../admission/operationWork.ts";
import { compileWriter, NotWritten, type SelectResult, type WriteData } from "./answerWriter.ts";
import { operationLabel } from "../operations/operationLabel.ts";

/** The context of an operation, as far as recorded code may read it. */
const sameForAll = new Set<PropertyKey>([
  "pgSettings",
  "withPgClient",
  "isSignedIn",
  "grafastMetricsEmitter",
]);

/** One execution of a plan. */
export class Recording implements StatementRecorder {
  #statements: { statement: SentStatement; rows: readonly unknown[] }[] = [];
  #selects: { step: PgSelectStep; result: SelectResult }[] = [];
  #isPersonal = false;

  /** The context, read under observation: code that depends on more than the viewer's role prevents recording. */
  watch<Context extends object>(context: Context): Context {
    const note = () => (this.#isPersonal = true);
    return new Proxy(context, {
      get(target, key) {
        if (!sameForAll.has(key) && typeof key === "string") note();
        return Reflect.get(target, key);
      },
      ownKeys(target) {
        note();
        return Reflect.ownKeys(target);
      },
    });
  }

  ran(statement: SentStatement, rows: readonly unknown[]): void {
    this.#statements.push({ statement, rows });
  }

  selected(step: PgSelectStep, result: SelectResult): void {
    this.#selects.push({ step, result });
  }

  /**
   * The statements with their steps, in the order of the steps.
   * @returns "unknown" if several returned no row, so that they cannot be assigned to steps; undefined if the work was specific to this
   * viewer, or one statement depends on the result of another
   */
  get complete(): readonly Recorded[] | "unknown" | undefined {
    const [sent, selects] = [this.#statements, this.#selects];
    if (this.#isPersonal || sent.length === 0 || sent.length !== selects.length) return undefined;
    if (sent.length === 1) return [{ ...sent[0]!, ...selects[0]! }];
    if (sent.length > MOST_STATEMENTS || !selects.every(({ step }) => isIndependent(step))) return undefined;
    if (new Set(selects.map(({ step }) => step)).size < selects.length) return undefined;
    const recorded: Recorded[] = [];
    for (const select of selects) {
      const [first] = select.result.items;
      if (first === undefined) return "unknown";
      const statement = sent.find(({ rows }) => rows[0] === first);
      if (!statement) return undefined;
      recorded.push({ ...statement, ...select });
    }
    return recorded.toSorted((a, b) => a.step.id - b.step.id);
  }
}

/** A statement with its step. */
interface Recorded {
  readonly statement: SentStatement;
  readonly rows: readonly unknown[];
  readonly step: PgSelectStep;
  readonly result: SelectResult;
}

/** Maximum statements of one compiled query: they are sent concurrently, each on a connection. */
const MOST_STATEMENTS = 3;

/** Whether a step is executed once, independent of the results of other statements. */
function isIndependent(step: PgSelectStep): boolean {
  const { layerPlan } = step as unknown as { layerPlan: { reason: { type: string } } };
  if (layerPlan.reason.type !== "root") return false;
  const seen = new Set<Step>();
  const check = (one: Step): boolean => {
    if (seen.has(one)) return true;
    seen.add(one);
    const { dependencies } = one as unknown as { dependencies: readonly Step[] };
    return dependencies.every((before) => !(before instanceof PgSelectStep) && check(before));
  };
  return check(step as unknown as Step);
}

/** The origin of a parameter of a statement. */
type Parameter =
  { readonly variable: string } | { readonly list: readonly Parameter[] } | { readonly constant: unknown };

type Variables = Readonly<Record<string, unknown>>;

/** The ids among the variables. */
type Ids = ReadonlyMap<string, string>;

function parameterOf(value: unknown, ids: Ids): Parameter {
  for (const [variable, id] of ids) if (id === value) return { variable };
  if (Array.isArray(value)) return { list: value.map((item) => parameterOf(item, ids)) };
  return { constant: value };
}

function bind(parameter: Parameter, variables: Variables): unknown {
  if ("variable" in parameter) return variables[parameter.variable];
  if ("list" in parameter) return parameter.list.map((item) => bind(item, variables));
  return parameter.constant;
}

/** Properties of an answer besides its data. */
export interface Measured {
  readonly cost: number;
  readonly part: readonly string[];
  readonly copies: number;
  readonly planning: number;
}

/** A statement of a compiled query. */
interface CompiledStatement {
  readonly text: string;
  readonly name: string | undefined;
  /** The result without its rows. */
  readonly shape: object;
  values(variables: Variables): unknown[];
}

/** A query that is answered by its independent statements. */
export interface CompiledQuery extends Measured {
  readonly statements: readonly CompiledStatement[];
  readonly operationName: string | undefined;
  /** Its name in logs and traces; see operationLabel. */
  readonly label: string | undefined;
  /** Lists whose size the operation leaves to their defaults. */
  readonly pages: readonly DefaultPage[];
  readonly write: WriteData;
}

/** The state of one operation with these variables. */
interface Candidate {
  executions: number;
  /** The first recorded execution. */
  first?: { ids: Ids; statements: readonly { text: string; parameters: readonly Parameter[] }[] };
  ready?: CompiledQuery;
  /** Ids that all executions for `ready` had in common; it only serves these. */
  fixed?: Ids;
  /** Whether its plan must always be executed. */
  isRefused: boolean;
}

/** Maximum sets of variables of one operation with a state. */
const MOST_CANDIDATES = 16;
/** Executions that are recorded before giving up. */
const MOST_RECORDED = 20;
/** Maximum characters of variables in a key. */
const MOST_CHARACTERS = 1_000;
const LONGEST_ID = 200;
/** Approximate bytes of a compiled query besides its statement. */
const BYTES = 6_000;

const isId = (type: TypeNode): boolean =>
  type.kind === Kind.NON_NULL_TYPE
    ? isId(type.type)
    : type.kind === Kind.NAMED_TYPE && type.name.value === "ID";

/** Called when a writer has not produced the plan's answer; then the plan keeps answering. */
export type MismatchListener = (document: string, planned: string, written: string) => void;

/** The compiled forms of an operation, by its variables. */
export class CompiledOperation {
  readonly #operation: OperationDefinitionNode | undefined;
  readonly #variables: readonly { name: string; isId: boolean }[];
  readonly #text: string;
  /** The oldest first. */
  readonly #candidates = new Map<string, Candidate>();

  /** @param text of the document */
  constructor(document: DocumentNode, operationName: string | null | undefined, text: string) {
    const operation = getOperationAST(document, operationName);
    this.#operation = operation?.operation === "query" ? operation : undefined;
    this.#variables = (operation?.variableDefinitions ?? []).map(({ variable, type }) => ({
      name: variable.name.value,
      isId: isId(type),
    }));
    this.#text = text;
  }

  /** The compiled query for these variables; undefined if the plan must be executed. */
  find(variables: Variables, isSignedIn: boolean): CompiledQuery | undefined {
    if (this.#candidates.size === 0) return undefined;
    const key = this.#keyOf(variables, isSignedIn);
    const candidate = key === undefined ? undefined : this.#candidates.get(key);
    return candidate && serves(candidate, variables) ? candidate.ready : undefined;
  }

  /** @returns a recording for the coming execution of the plan; undefined if it would be useless */
  record(variables: Variables, isSignedIn: boolean): Recording | undefined {
    const key = this.#operation && this.#keyOf(variables, isSignedIn);
    if (key === undefined) return undefined;
    let candidate = this.#candidates.get(key);
    if (!candidate) {
      if (this.#candidates.size >= MOST_CANDIDATES) this.#drop();
      this.#candidates.set(key, (candidate = { executions: 0, isRefused: false }));
    }
    if (candidate.isRefused || isGeneral(candidate) || serves(candidate, variables)) return undefined;
    candidate.executions += 1;
    if (candidate.executions > MOST_RECORDED) candidate.isRefused = true;
    return candidate.isRefused ? undefined : new Recording();
  }

  /**
   * Stores the recording of an execution without errors.
   * @returns the bytes that are stored from now on
   */
  take(
    recording: Recording,
    {
      variables,
      isSignedIn,
      data,
      measured,
      pages,
      mismatch,
    }: {
      variables: Variables;
      isSignedIn: boolean;
      data: object;
      measured: Measured;
      pages: readonly DefaultPage[];
      mismatch?: MismatchListener | undefined;
    },
  ): number {
    const candidate = this.#candidates.get(this.#keyOf(variables, isSignedIn) ?? "");
    if (!candidate || isGeneral(candidate) || candidate.isRefused) return 0;
    const { complete } = recording;
    if (complete === "unknown") return 0;
    const ids = this.#idsOf(variables);
    if (!complete) return this.#refuse(candidate);
    // It is ambiguous which of two variables an id came from.
    if (new Set(ids.values()).size < ids.size) return 0;
    const open = pages.filter(({ variable }) => variable === undefined || variables[variable] == null);
    const steps = complete.map(({ step }) => step);
    const write = compileWriter(
      (steps[0] as unknown as { operationPlan: OperationPlan }).operationPlan,
      steps,
      open,
    );
    const results = complete.map(({ rows, result }) => ({ ...result, items: rows }));
    if (!write || !this.#isWritten(write, results, data, mismatch)) return this.#refuse(candidate);
    const { first } = candidate;
    if (!first) {
      const statements = complete.map(({ statement: { text, values = [] } }) => ({
        text,
        parameters: values.map((value) => parameterOf(value, ids)),
      }));
      candidate.first = { ids, statements };
      return 0;
    }
    const fixed = new Map([...ids].filter(([variable, id]) => first.ids.get(variable) === id));
    // Compiled in the meantime for the same ids.
    if (candidate.fixed && [...candidate.fixed.keys()].every((variable) => fixed.has(variable))) return 0;
    const isSame = complete.every(({ statement: { text, values = [] } }, index) => {
      const before = first.statements[index];
      const bound = before?.parameters.map((parameter) => bind(parameter, variables));
      return before?.text === text && JSON.stringify(bound) === JSON.stringify(values);
    });
    if (!isSame || first.statements.length !== complete.length) return this.#refuse(candidate);
    const bytes = candidate.ready
      ? 0
      : BYTES + complete.reduce((sum, { statement }) => sum + statement.text.length, 0);
    candidate.fixed = fixed;
    candidate.ready = {
      ...measured,
      statements: complete.map(({ statement: { text, name }, result }, index) => {
        const { items: _, ...shape } = result;
        const { parameters } = first.statements[index]!;
        return {
          text,
          name,
          shape,
          values: (given) => parameters.map((parameter) => bind(parameter, given)),
        };
      }),
      operationName: this.#operation?.name?.value,
      label: this.#operation && operationLabel(this.#operation),
      pages: open,
      write,
    };
    if (fixed.size === 0) delete candidate.first;
    return bytes;
  }

  #isWritten(
    write: WriteData,
    results: readonly SelectResult[],
    data: object,
    mismatch: MismatchListener = () => {},
  ): boolean {
    let written: string;
    try {
      written = write(results).text;
    } catch (error) {
      if (error instanceof NotWritten) return false;
      throw error;
    }
    const planned = JSON.stringify(data);
    if (written === planned) return true;
    mismatch(this.#text, planned, written);
    return false;
  }

  #refuse(candidate: Candidate): number {
    candidate.isRefused = true;
    delete candidate.first;
    delete candidate.ready;
    return 0;
  }

  #drop(): void {
    for (const [key, { ready }] of this.#candidates)
      if (!ready) {
        this.#candidates.delete(key);
        return;
      }
    this.#candidates.delete(this.#candidates.keys().next().value!);
  }

  #idsOf(variables: Variables): Ids {
    const ids = new Map<string, string>();
    for (const { name, isId: can } of this.#variables)
      if (can && isBindable(variables[name])) ids.set(name, variables[name]);
    return ids;
  }

  /** The key of variables, without ids. */
  #keyOf(variables: Variables, isSignedIn: boolean): string | undefined {
    let key = isSignedIn ? "viewer" : "stranger";
    for (const { name, isId: can } of this.#variables) {
      const value = variables[name];
      key += can && isBindable(value) ? "\n" : `\n${JSON.stringify(value)}`;
    }
    return key.length > MOST_CHARACTERS ? undefined : key;
  }
}

/** Whether it is compiled for all ids. */
const isGeneral = ({ ready, fixed }: Candidate): boolean => ready !== undefined && fixed?.size === 0;

/** Whether it is compiled for these ids. */
const serves = ({ ready, fixed }: Candidate, variables: Variables): boolean => {
  if (!ready) return false;
  for (const [variable, id] of fixed!) if (variables[variable] !== id) return false;
  return true;
};

/** Whether a value of type ID is passed to statements unchanged. */
const isBindable = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= LONGEST_ID;
