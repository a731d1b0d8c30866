/** Templates and conditions that use excessive resources. */

/**
 * `all` over a literal list of 100 elements, nested: 100 to that power times an expression that cannot be
 * computed in advance.
 */
export const nestedAll = (levels: number): object =>
  levels === 0
    ? { ">": [{ secondsSince: "2020-01-01T00:00:00Z" }, 1] }
    : { all: [Array.from({ length: 100 }, (_, n) => n), nestedAll(levels - 1)] };

/** A single filter that takes minutes, during which time limits are not checked. */
export const slowFilter = `{{ (1..200000) | where_exp: "x", "x${" | plus: 1".repeat(500)}" | size }}`;

/** A loop that takes minutes. */
export const slowLoop =
  "{% for i in (1..3000) %}{% for j in (1..3000) %}{{ i | plus: j }}{% endfor %}{% endfor %}";

/** A text that doubles until memory is exhausted. */
export const doubling =
  '{% assign s = "xxxxxxxx" %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}{{ s }}';
