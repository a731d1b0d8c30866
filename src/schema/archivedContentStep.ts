/** The content of archived events, which is read from the file store; see src/archives. */
import {
  context,
  flagError,
  type GrafastResultsList,
  type ExecutionDetails,
  Step,
} from "postgraphile/grafast";
import { ArchiveUnreadable, type EventArchives, type EventContent, viewerReader } from "../archives/index.ts";
import { partyOf } from "../admission/party.ts";
import { CodedError } from "../base/errors.ts";

declare global {
  namespace Grafast {
    interface Context {
      /** Reads the content of archived events; without it, there is none. */
      eventArchives?: EventArchives | undefined;
    }
  }
}

const unavailable = (cause: unknown) =>
  new CodedError(
    "UNAVAILABLE",
    "The archived content of the event cannot be read at the moment; try again later.",
    { retryAfterSeconds: 10 },
    { cause },
  );

/** Reads the contents of events as the viewer: two statements for any number of events, none if no event is archived. */
async function contentsOf(
  ids: readonly string[],
  { eventArchives, withPgClient, pgSettings, claims, ip }: Grafast.Context,
): Promise<ReadonlyMap<string, EventContent | Error>> {
  if (!eventArchives) throw new Error("The context has no archives of events.");
  return eventArchives.contents(
    ids,
    viewerReader(partyOf(claims.userId, ip), async <Row>(text: string, values: unknown[]) => {
      const { rows } = await withPgClient(pgSettings, (client) => client.query<Row>({ text, values }));
      return rows;
    }),
  );
}

/** The content of an event by its id and the time at which it was archived; null if it was not, or is not visible. */
export class ArchivedContentStep extends Step<EventContent | null> {
  override isSyncAndSafe = false;

  constructor($id: Step, $archivedAt: Step) {
    super();
    this.addDependency($id);
    this.addDependency($archivedAt);
    this.addUnaryDependency(context());
  }

  /** The step that says when the event was archived: without an archived event, the content is null. */
  get archivedAt(): Step {
    return this.getDep(1);
  }

  override deduplicate(peers: readonly ArchivedContentStep[]): readonly ArchivedContentStep[] {
    return peers;
  }

  override async execute({
    count,
    values: [$ids, $ats, $context],
  }: ExecutionDetails): Promise<GrafastResultsList<EventContent | null>> {
    const idAt = (index: number) =>
      $ats!.at(index) == null ? undefined : ($ids!.at(index) as string | null | undefined);
    const indexes = Array.from({ length: count }, (_, index) => index);
    const ids = indexes.flatMap((index) => idAt(index) ?? []);
    if (ids.length === 0) return indexes.map(() => null);
    const contents = await contentsOf(ids, $context!.at(0) as Grafast.Context);
    return indexes.map((index) => {
      const content = contents.get(idAt(index) ?? "");
      if (content instanceof ArchiveUnreadable) return flagError(unavailable(content)) as never;
      return (content as EventContent | undefined) ?? null;
    });
  }
}
