// @ts-check
/** The current units of a project. Changes by anyone appear immediately. */
import { known } from "./portal.js";
import { followSession, showEvent } from "./feed.js";
import { act, element, request, session, tell } from "./session.js";

await known;

const at = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
/** @type {Map<string, any>} */
const units = new Map();
const words = (/** @type {string} */ status) => status.toLowerCase().replaceAll("_", " ");
/** By project. @type {Map<string, string>} */
const currencies = new Map();

const money = (/** @type {string | null} */ amount) =>
  amount === null
    ? "no price"
    : new Intl.NumberFormat(undefined, {
        style: "currency",
        currency: currencies.get(at("project").value) ?? "CAD",
        maximumFractionDigits: 0,
      }).format(Number(amount));

async function showProjects() {
  if (!session.viewer) {
    units.clear();
    for (const id of ["project", "lead", "units", "counts", "events"]) at(id).replaceChildren();
    return;
  }
  const { projects } = await request("Projects");
  projects.sort(
    (/** @type {any} */ a, /** @type {any} */ b) =>
      Number(b.status === "SELLING") - Number(a.status === "SELLING") || a.title.localeCompare(b.title),
  );
  at("project").replaceChildren(...projects.map((/** @type {any} */ one) => new Option(one.title, one.id)));
  for (const { id, currency } of projects) currencies.set(id, currency);
  await showUnits();
}

async function showUnits() {
  const projectId = at("project").value;
  if (!projectId)
    return at("units").replaceChildren(element("li", {}, "There is no project that you may see."));
  const { units: read, leads } = await request("Floor", { projectId });
  units.clear();
  for (const unit of read) units.set(unit.id, unit);
  at("lead").replaceChildren(...leads.map((/** @type {any} */ one) => new Option(one.name, one.id)));
  at("units").replaceChildren(...read.map(card));
  if (read.length === 0) at("units").append(element("li", {}, "This project has no units that you may see."));
  count();
}

function count() {
  const counts = Map.groupBy(units.values(), ({ status }) => status);
  at("counts").replaceChildren(
    ...[...counts].map(([status, some]) =>
      element("li", { className: `status ${status.toLowerCase()}` }, `${some.length} ${words(status)}`),
    ),
  );
}

/** @param {any} unit */
function card(unit) {
  const { id, number, title, status, price, bedrooms, baths, sqft, activeHold, activeReservation } = unit;
  const button = (/** @type {string} */ label, /** @type {() => Promise<void>} */ work) =>
    element(
      "button",
      { type: "button", className: "plain", ariaLabel: `${label} ${title}`, onclick: () => act(work) },
      label,
    );
  const leadId = at("lead").value;
  return element(
    "li",
    { id: `unit-${id}`, className: `unit ${status.toLowerCase()}` },
    element("h2", {}, number ?? title),
    element("p", { className: `status ${status.toLowerCase()}` }, words(status)),
    element("p", {}, money(price)),
    element(
      "p",
      { className: "quiet" },
      `${bedrooms ?? "–"} bed, ${baths ?? "–"} bath, ${sqft ?? "–"} sq ft`,
    ),
    element(
      "p",
      { className: "bar" },
      status === "AVAILABLE" &&
        button("Hold", async () => {
          await request("Hold", {
            input: { unitId: id, ...(leadId && { leadId: at("lead").value }) },
          });
          tell(`${title} is held.`);
        }),
      status === "AVAILABLE" &&
        button("Reserve", async () => {
          await request("Reserve", {
            input: { unitId: id, acceptedTerms: true, ...(leadId && { leadId: at("lead").value }) },
          });
          tell(`${title} is reserved.`);
        }),
      activeHold &&
        button("Release", async () => {
          await request("Release", {
            input: { id: activeHold.id },
          });
          tell(`${title} is released.`);
        }),
      activeReservation &&
        !activeHold &&
        status === "RESERVED" &&
        button("Cancel", async () => {
          await request("Cancel", { input: { id: activeReservation.id, status: "CANCELLED" } });
          tell(`The reservation of ${title} is cancelled.`);
        }),
    ),
  );
}

/** Ids of units that have changed; they are read again together, in one request. */
const stale = new Set();
let timer = 0;
/** @param {any} event */
function onEvent(event) {
  showEvent(at("events"), event);
  if (event.projectId && event.projectId !== at("project").value) return;
  if (event.subjectType?.toLowerCase() === "unit") stale.add(event.subjectId);
  if (stale.size > 0) timer ||= window.setTimeout(refresh, 50);
}
async function refresh() {
  timer = 0;
  const ids = [...stale].filter((id) => units.has(id)).slice(0, 100);
  stale.clear();
  if (ids.length === 0) return;
  await act(async () => {
    const { nodes } = await request("Changed", { ids });
    for (const unit of nodes.filter(Boolean)) {
      units.set(unit.id, unit);
      const made = card(unit);
      const isHere = at(`unit-${unit.id}`)?.contains(document.activeElement);
      at(`unit-${unit.id}`)?.replaceWith(made);
      made.classList.add("turned");
      if (isHere) (made.querySelector("button") ?? at("main")).focus();
    }
    count();
  });
}

at("project").addEventListener("change", () => act(showUnits));
/** @type {string | undefined} */
let shown;
const follow = () => {
  const key = `${session.viewer?.id} ${session.organizationId}`;
  if (key === shown) return;
  shown = key;
  act(showProjects).catch(console.error);
};
session.addEventListener("change", follow);
follow();
followSession({
  names: "unit.*,reservation.*,unit_hold.*",
  idle: "Sign in to see units.",
  onState: (text) => (at("live").textContent = text),
  onEvent,
});
