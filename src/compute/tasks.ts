/**
 * What the threads compute: a table of functions of plain data, one for each subject of the service. A function may throw BudgetExceeded;
 * the error becomes part of the result, because the caller reports it to people.
 */
import { checkDraft } from "./drafts/checkDraft.ts";
import type { Fact } from "../providers/drafts/index.ts";
import { calendarText, type CalendarFeed } from "./calendarText.ts";
import { checkMapping, mapped, type Mapping } from "./mapping.ts";
import { holds } from "./conditions.ts";
import { readTexts, type TextChecks } from "./definitionTexts.ts";
import { inputOf, type Step } from "./input.ts";
import { nextRun, scheduleFault } from "./schedule.ts";
import { BudgetExceeded } from "./budget.ts";

/** An execution whose step is computed. */
export interface StepRun {
  executionId: string;
  attempt: number;
  data: Record<string, unknown>;
}
export type StepResult = { executionId: string; attempt: number } & (
  { input: Record<string, unknown> } | { error: string; code?: "LIMIT_EXCEEDED" }
);

/** The result of a computation, or why it exceeds its budget. */
export type Computed<T> = { value: T } | { over: string };

/** A function of what all items of a job share, and of one item. */
interface Task<S, I, R> {
  run(shared: S, item: I): R;
  /** The result if the item exceeds its budget. */
  over(message: string, item: I): R;
}
const task = <S, I, R>(given: Task<S, I, R>) => given;
/** A function whose result itself reports an exceeded budget. */
const computed = <S, I, R>(run: (shared: S, item: I) => R) =>
  task<S, I, Computed<R>>({
    run: (shared, item) => ({ value: run(shared, item) }),
    over: (message) => ({ over: message }),
  });

export const tasks = {
  /** The config of a step for an execution. */
  step: task<Step, StepRun, StepResult>({
    run(step, { executionId, attempt, data }) {
      try {
        return { executionId, attempt, input: inputOf(step, data) };
      } catch (error) {
        if (error instanceof BudgetExceeded) throw error;
        return { executionId, attempt, error: (error as Error).message };
      }
    },
    over: (message, { executionId, attempt }) => ({
      executionId,
      attempt,
      error: message,
      code: "LIMIT_EXCEEDED",
    }),
  }),
  /** Whether a condition is true for the data; no condition is always true. */
  condition: computed<null, { condition?: unknown; data?: object }, boolean>(
    (_, { condition, data }) => condition === undefined || condition === null || holds(condition, data ?? {}),
  ),
  /** The index of the first event for which the condition is true; -1 if there is none. */
  event: computed<
    null,
    { condition: unknown; data: object; events: Record<string, unknown>[] | null },
    number
  >((_, { condition, data, events }) =>
    (events ?? []).findIndex((event) => holds(condition, { ...data, event })),
  ),
  /** The body of an event in the fields of another system. */
  mapping: computed<Mapping, object, Record<string, unknown>>(mapped),
  /** Why a mapping is invalid, with its path; null if it is valid. */
  mappingFault: computed<null, Mapping, { at: string; message: string } | null>((_, mapping) =>
    checkMapping(mapping),
  ),
  /** The variables that the templates of a definition read. */
  definition: computed<null, { config: unknown; at: string }[], TextChecks>((_, configs) =>
    readTexts(configs),
  ),
  /** The faults of a draft of a mail, and the facts that it states. */
  draft: computed<
    null,
    {
      draft: { subject: string; body: string };
      facts: readonly Fact[];
      quotes: readonly { text: string }[];
    },
    { violations: string[]; used: string[]; loose: string[] }
  >((_, { draft, facts, quotes }) => {
    const { violations, used, loose } = checkDraft(draft, facts, quotes);
    return { violations, used: [...used], loose };
  }),
  /** A feed of appointments as iCalendar. */
  calendar: computed<null, CalendarFeed, string>((_, feed) => calendarText(feed)),
  /** When a cron line is due next, as ISO 8601; null if it can no longer be parsed. */
  schedule: computed<null, { schedule: string; timeZone: string; after: string }, string | null>(
    (_, { schedule, timeZone, after }) => {
      try {
        return nextRun(schedule, timeZone, new Date(after)).toISOString();
      } catch {
        return null;
      }
    },
  ),
  /** Why a cron line is invalid; null if it is valid. */
  scheduleFault: computed<null, string, string | null>((_, line) => scheduleFault(line) ?? null),
};

export type Tasks = typeof tasks;
export type TaskName = keyof Tasks;
export type Shared<N extends TaskName> = Parameters<Tasks[N]["run"]>[0];
export type Item<N extends TaskName> = Parameters<Tasks[N]["run"]>[1];
export type Result<N extends TaskName> = ReturnType<Tasks[N]["run"]>;
