export {
  EventArchives,
  viewerReader,
  type ArchivedEvent,
  type ArchivedLine,
  type EventContent,
} from "./eventArchives.ts";
export { ArchiveUnreadable } from "./eventObjects.ts";
