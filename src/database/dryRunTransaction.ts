import { OperationTransaction } from "./operationTransaction.ts";
import type { Session, Statement } from "./session.ts";

/** An event as visible to the viewer. */
export interface DryEvent {
  name: string;
  subjectType: string;
  subjectId: string;
  organizationId: string | null;
  projectId: string | null;
  changes: Record<string, [unknown, unknown]> | null;
  data: Record<string, unknown>;
}

/** Effects of a dry run; see migrations/objects/15-operations/dry-runs.sql. */
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

/** Maximum number of events that are listed. */
const mostEvents = 200;

/** Events written by the open transaction, as visible to the viewer. */
export async function heldEvents(
  session: Session,
): Promise<Pick<DryRunFindings, "events" | "moreEvents"> & { seen: string[] }> {
  const text = "select app_hidden.dry_run_events($1)";
  return one(session, [{ text, values: [mostEvents] }]);
}

const one = async <T>(session: Session, statements: Statement[]): Promise<T> =>
  ((await session.send(statements, true)).rows as [[T]])[0][0];

/**
 * A dry run: the transaction is inspected, as far as the viewer may see its effects, and rolled back. `COMMIT` is not
 * among the statements that this file can send.
 */
export class DryRun extends OperationTransaction<DryRunFindings> {
  override readonly isDry = true;

  protected override async finish(session: Session): Promise<DryRunFindings> {
    const { seen, ...found } = await heldEvents(session);
    // The remaining effects are read by the service, which reports what the viewer may see.
    const asService = { text: "select pg_catalog.set_config('role', 'none', true)" };
    const rest = await one<Omit<DryRunFindings, "events" | "moreEvents">>(session, [
      asService,
      { text: "select app_private.dry_run_effects($1)", values: [JSON.stringify(seen)] },
    ]);
    return { ...found, ...rest };
  }
}
