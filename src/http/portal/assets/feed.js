// @ts-check
/** The events of an organization as they are committed; the stream is resumed after lost connections. */
import { element, session } from "./session.js";

/**
 * @param {{ names?: string, onEvent: (event: any) => void, onState: (text: string) => void }} listening
 * @returns {() => void} what ends it
 */
function follow({ names, onEvent, onState }) {
  const organizationId = session.organizationId ?? "";
  /** @type {string | undefined} */
  let sequence;
  /** @type {EventSource | undefined} */
  let source;
  let timer = 0;
  let ended = false;
  const connect = async () => {
    try {
      const response = await fetch("/events/tickets", {
        method: "POST",
        headers: { authorization: `Bearer ${session.token}` },
      });
      if (!response.ok) throw new Error("There is no ticket.");
      const { ticket } = await response.json();
      if (ended) return;
      const parameters = new URLSearchParams({ organizationId, ticket });
      if (names) parameters.set("names", names);
      if (sequence) parameters.set("after", sequence);
      source = new EventSource(`/events/stream?${parameters}`);
      source.onmessage = ({ data, lastEventId }) => {
        sequence = lastEventId;
        onEvent(JSON.parse(data));
      };
      source.addEventListener("complete", ({ lastEventId }) => {
        sequence = lastEventId;
        onState("Live");
      });
      source.onerror = () => {
        source?.close();
        again();
      };
    } catch {
      again();
    }
  };
  const again = () => {
    if (ended) return;
    onState("The connection is lost; it is being made again …");
    timer = window.setTimeout(connect, 1000 + 2000 * Math.random());
  };
  onState("Connecting …");
  connect().catch(again);
  return () => {
    ended = true;
    window.clearTimeout(timer);
    source?.close();
  };
}

/**
 * Follows the selected organization, also after the selection changes.
 * @param {Parameters<typeof follow>[0] & { idle: string }} listening
 */
export function followSession(listening) {
  /** @type {(() => void) | undefined} */
  let end;
  /** @type {string | undefined} */
  let followed;
  const begin = () => {
    const key =
      session.viewer && session.organizationId ? `${session.viewer.id} ${session.organizationId}` : undefined;
    if (key === followed) return;
    followed = key;
    end?.();
    end = undefined;
    if (key) end = follow(listening);
    else listening.onState(listening.idle);
  };
  session.addEventListener("change", begin);
  begin();
}

/**
 * Adds an event to a list, which shows the latest fifty.
 * @param {Element} list @param {any} event
 */
export function showEvent(list, event) {
  const changes = Object.entries(event.changes ?? {}).map(
    ([name, [before, after]]) => `${name}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
  );
  list.prepend(
    element(
      "li",
      {},
      element("strong", {}, event.type ?? event.name),
      element("span", { className: "quiet" }, ` #${event.sequence}`),
      changes.length > 0 ? element("code", {}, changes.join(", ")) : "",
    ),
  );
  while (list.children.length > 50) list.lastElementChild?.remove();
}
