import { HeldRun } from "./heldRun.ts";
import type { Session, Statement } from "./session.ts";

/** An event as the viewer reads it. */
export interface DryEvent {
  name: string;
  subjectType: string;
  subjectId: string;
  organizationId: string | null;
  projectId: string | null;
  changes: Record<string, [unknown, unknown]> | null;
  data: Record<string, unknown>;
}

/** What a dry run has done, and what would follow; see migrations/objects/15-operations/dry-runs.sql. */
export interface DryRunFindings {
  events: DryEvent[];
  moreEvents: number;
  jobs: { task: string; id?: string; runAt?: string }[];
  notifications: { kind: string; members: number }[];
  webhooks: { id: string; url: string; events: string[] }[];
  workflows: {
    workflowId: string;
    organizationId: string;
    name: string;
    event: string;
    subjectId: string;
    condition?: unknown;
    data?: object;
  }[];
}

/** Events that are told one by one. */
const mostEvents = 200;

/** The events that the open transaction has written, as its viewer reads them. */
export async function heldEvents(
  session: Session,
): Promise<Pick<DryRunFindings, "events" | "moreEvents"> & { seen: string[] }> {
  const text = "select app_hidden.dry_run_events($1)";
  return one(session, [{ text, values: [mostEvents] }]);
}

const one = async <T>(session: Session, statements: Statement[]): Promise<T> =>
  ((await session.send(statements, true)).rows as [[T]])[0][0];

/**
 * An operation of which nothing is kept: its transaction is read, as far as the viewer may know of it, and rolled back. `COMMIT` is not
 * among the statements that this file can send.
 */
export class DryRun extends HeldRun<DryRunFindings> {
  override readonly isDry = true;

  protected override async finish(session: Session): Promise<DryRunFindings> {
    const { seen, ...told } = await heldEvents(session);
    // The rest is for the service, which tells of it what the viewer may know.
    const asService = { text: "select pg_catalog.set_config('role', 'none', true)" };
    const rest = await one<Omit<DryRunFindings, "events" | "moreEvents">>(session, [
      asService,
      { text: "select app_private.dry_run_effects($1)", values: [JSON.stringify(seen)] },
    ]);
    return { ...told, ...rest };
  }
}
