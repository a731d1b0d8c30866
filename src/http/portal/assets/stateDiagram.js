// @ts-check
/** The transitions of a status as a diagram, and as a table for screen readers. */
import { element } from "./session.js";

const svgOf = (
  /** @type {string} */ tag,
  /** @type {Record<string, any>} */ attributes,
  /** @type {(string | Node)[]} */ ...children
) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
};

/**
 * States are arranged in columns, by the number of transitions from an initial state.
 * @param {string} name
 * @param {{ from: string, byHand: string[], byService: string[] }[]} steps
 */
export function stateDiagram(name, steps) {
  const all = [...new Set(steps.flatMap(({ from, byHand, byService }) => [from, ...byHand, ...byService]))];
  const next = new Map(steps.map(({ from, byHand, byService }) => [from, [...byHand, ...byService]]));
  const column = new Map([["(new)", 0]]);
  for (let at = ["(new)"], depth = 1; at.length > 0; depth++) {
    at = at.flatMap((from) => next.get(from) ?? []).filter((to) => !column.has(to));
    for (const to of at) column.set(to, Math.max(1, depth));
  }
  const [width, height, across, down] = [150, 30, 210, 52];
  const rows = /** @type {number[]} */ ([]);
  const places = new Map(
    all.map((state) => {
      const x = column.get(state) ?? 1;
      const y = (rows[x] = (rows[x] ?? 0) + 1) - 1;
      return [state, { x: 10 + x * across, y: 10 + y * down + (x % 2) * 12, column: x }];
    }),
  );
  const lines = steps.flatMap(({ from, byHand, byService }) =>
    [
      ...byHand.map((to) => ({ to, className: "by-hand" })),
      ...byService.map((to) => ({ to, className: "by-service" })),
    ].map(({ to, className }) => {
      const [a, b] = [places.get(from), places.get(to)];
      if (!a || !b) return "";
      const isForward = b.column > a.column;
      const [x1, x2] = isForward
        ? [a.x + width, b.x]
        : a.column === b.column
          ? [a.x + width, b.x + width]
          : [a.x, b.x + width];
      const [y1, y2] = [a.y + height / 2 + (isForward ? 0 : 5), b.y + height / 2 + (isForward ? 0 : 5)];
      const bend =
        a.column === b.column ? [x1 + 35, x2 + 35] : isForward ? [x1 + 40, x2 - 40] : [x1 - 40, x2 + 40];
      return svgOf("path", {
        class: className,
        d: `M${x1} ${y1} C${bend[0]} ${y1} ${bend[1]} ${y2} ${x2} ${y2}`,
        "marker-end": "url(#arrow)",
      });
    }),
  );
  const boxes = [...places].map(([state, { x, y }]) =>
    svgOf(
      "g",
      {},
      svgOf("rect", { x, y, width, height, rx: 6 }),
      svgOf("text", { x: x + width / 2, y: y + 19, "text-anchor": "middle" }, state),
    ),
  );
  const total = [
    Math.max(...[...places.values()].map(({ x }) => x)) + width + 50,
    Math.max(...[...places.values()].map(({ y }) => y)) + height + 10,
  ];
  const marker = svgOf(
    "marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svgOf("path", { class: "head", d: "M0 0L8 4L0 8z" }),
  );
  const picture = svgOf(
    "svg",
    {
      viewBox: `0 0 ${total[0]} ${total[1]}`,
      width: total[0],
      height: total[1],
      role: "img",
      "aria-label": `States: ${name}. The table below says the same.`,
      class: "states",
    },
    svgOf("defs", {}, marker),
    ...lines,
    ...boxes,
  );
  const cell = (/** @type {string[]} */ states) => element("td", {}, states.join(", ") || "–");
  return [
    element("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "State diagram" }, picture),
    element("p", { className: "quiet" }, "Whole lines are steps by hand, dashed ones those of the service."),
    element(
      "div",
      { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "Table of states" },
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            ...["From", "Manually to", "By the service to"].map((text) =>
              element("th", { scope: "col" }, text),
            ),
          ),
        ),
        element(
          "tbody",
          {},
          ...steps.map(({ from, byHand, byService }) =>
            element("tr", {}, element("th", { scope: "row" }, from), cell(byHand), cell(byService)),
          ),
        ),
      ),
    ),
  ];
}
