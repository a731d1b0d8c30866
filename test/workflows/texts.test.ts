/** Conditions and templates of workflows: their results, and what they cannot do. */
import { describe, expect, test } from "@jest/globals";
import { holds } from "../../src/compute/conditions.ts";
import { scheduleFault } from "../../src/compute/schedule.ts";
import { checkTemplate, createWriter } from "../../src/compute/templates.ts";

const data = {
  lead: {
    name: "Ada <b>Lang</b>",
    tags: ["vip", "two-bedroom"],
    budgetMax: 425000,
    email: null,
    registeredAt: "2026-01-01T00:00:00.000000Z",
  },
  event: { changes: { status: ["NEW", "HOT"] } },
};

const renderTemplate = (text: string, over: object, options?: { html?: boolean }) =>
  createWriter(over).write(text, options);
const renderTemplates = (value: unknown, over: object) => createWriter(over).writeAll(value);

describe("templates", () => {
  test("write values, lists and amounts; missing values are empty", () => {
    expect(
      renderTemplate(
        "{{ lead.name }}, {{ lead.budgetMax | money }}{{ lead.email }}{{ lead.nope.deeper }}",
        data,
      ),
    ).toBe("Ada <b>Lang</b>, 425,000.00");
    expect(renderTemplate("{% for tag in lead.tags %}{{ forloop.index }}:{{ tag }} {% endfor %}", data)).toBe(
      "1:vip 2:two-bedroom ",
    );
    expect(renderTemplate("Costs {5}", data)).toBe("Costs {5}");
    // Characters that the database would refuse, together with the whole batch.
    expect(renderTemplate('{{ "🏠 home" | split: "" | first }}{{ "%00" | url_decode }}.', data)).toBe(
      "\uFFFD\uFFFD.",
    );
    expect(
      renderTemplates({ a: ["{{ lead.tags[0] }}", 1, null], b: { c: "{{ lead.tags.size }}" } }, data),
    ).toEqual({ a: ["vip", 1, null], b: { c: "2" } });
  });

  test("escape values in HTML, and only values", () => {
    expect(renderTemplate("<p>{{ lead.name }}</p>", data, { html: true })).toBe(
      "<p>Ada &lt;b&gt;Lang&lt;/b&gt;</p>",
    );
  });

  test("have no access to code or files, and end", () => {
    for (const text of [
      "{{ lead.constructor.name }}",
      "{{ lead.tags.constructor }}",
      "{{ lead.__proto__ }}",
      "{{ lead.name.toString }}",
    ])
      expect(renderTemplate(text, data)).toBe("");
    for (const text of ["{% include '/etc/passwd' %}", "{% render 'x' %}", "{% layout 'x' %}"])
      expect(checkTemplate(text)).toEqual({ fault: expect.stringMatching(/not found/) });
    expect(() => renderTemplate("{% for i in (1..100000000) %}{{ i }}{% endfor %}", data)).toThrow(
      /take more computing than a step may take/,
    );
    expect(() =>
      renderTemplate(
        "{% for i in (1..3000) %}{% for j in (1..3000) %}{{ lead.name | upcase | append: lead.name }}{% endfor %}{% endfor %}",
        data,
      ),
    ).toThrow(/take more computing than a step may take/);
  });

  test("report the variables that they read", () => {
    expect(
      checkTemplate(
        "{% assign a = lead.email %}{{ a }}{% for t in lead.tags %}{{ t }}{% endfor %}{% if event.data.x %}{{ steps[1].taskId | upcase }}{% endif %}",
      ),
    ).toEqual({
      variables: [
        ["lead", "email"],
        ["lead", "tags"],
        ["event", "data", "x"],
        ["steps", "1", "taskId"],
      ],
    });
  });
});

describe("conditions", () => {
  test.each<[unknown, boolean]>([
    [{ "==": [{ var: "event.changes.status.1" }, "HOT"] }, true],
    [{ ">": [{ var: "lead.budgetMax" }, 400000] }, true],
    [{ "<": [1, { var: "lead.budgetMax" }, 3] }, false],
    [{ in: ["vip", { var: "lead.tags" }] }, true],
    [{ some: [{ var: "lead.tags" }, { "==": [{ var: "" }, "two-bedroom"] }] }, true],
    [{ "!!": [{ var: "lead.email" }] }, false],
    [{ "==": [{ var: ["lead.nope.deeper", "none"] }, "none"] }, true],
    [{ missing: ["lead.email"] }, true],
    [{ ">": [{ secondsSince: { var: "lead.registeredAt" } }, 86400] }, true],
    [{ "<": [{ secondsSince: { var: "lead.name" } }, 10] }, false],
    [{ ">": [{ "/": [1, 0] }, 5] }, false],
    [{ var: "lead.constructor" }, false],
    [{ nonsense: [1] }, false],
  ])("%j: %s", (condition, expected) => {
    // Several times, because the library optimizes repeated evaluations.
    expect([1, 2, 3].map(() => holds(condition, data))).toEqual([expected, expected, expected]);
  });
});

test("a cron expression has five fields and a next time", () => {
  for (const line of ["0 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 29 2 *", "0 0 L * *", " 5 4 1,15 */2 * "])
    expect([line, scheduleFault(line)]).toEqual([line, undefined]);
  for (const line of [
    "",
    "0 9 * *",
    "0 9 * * * *",
    "@hourly",
    "H * * * *",
    "a b c d e",
    "61 * * * *",
    "0 24 * * *",
    "0 0 30 2 *",
    "0 0 31 4,6 *",
    "0 0 * * 9",
    "0 0 1-0 * *",
  ])
    expect([line, scheduleFault(line)]).toEqual([line, expect.any(String)]);
});
