// @ts-check
/** Code that sends an operation: with curl, with fetch, and with the client. */
import { element } from "./session.js";

/** @param {{ query: string, variables?: object, operationName?: string }} body */
function snippetsOf({ query, variables = {}, operationName }) {
  const body = JSON.stringify({ query, variables, ...(operationName && { operationName }) }, null, 2);
  const indented = (/** @type {unknown} */ value) => JSON.stringify(value, null, 2);
  const url = `${location.origin}/graphql`;
  return {
    curl: `curl -sk ${url} \\\n  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${body.replaceAll("'", String.raw`'\''`)}'`,
    fetch: `const response = await fetch("${url}", {\n  method: "POST",\n  headers: { authorization: \`Bearer \${token}\`, "content-type": "application/json" },\n  body: JSON.stringify({\n    query: \`${query.replaceAll("`", "\\`")}\`,\n    variables: ${indented(variables)},\n  }),\n});\nconst { data, errors } = await response.json();`,
    client: `import { createClient } from "@plat/client";\n\nconst plat = createClient({ url: "${url}", token });\nconst data = await plat.request(\n  \`${query.replaceAll("`", "\\`")}\`,\n  ${indented(variables)},\n);`,
  };
}

/** The three snippets, one of which is shown at a time. @param {Parameters<typeof snippetsOf>[0]} body */
export function codeFor(body) {
  const snippets = snippetsOf(body);
  const text = element("code", {}, snippets.curl);
  const choose = element("select", {
    ariaLabel: "Written for",
    onchange: () => (text.textContent = /** @type {any} */ (snippets)[choose.value]),
  });
  for (const name of Object.keys(snippets)) choose.add(new Option(name, name));
  const copy = element(
    "button",
    {
      type: "button",
      className: "plain",
      onclick: async () => {
        await navigator.clipboard.writeText(text.textContent);
        copy.textContent = "Copied";
      },
    },
    "Copy",
  );
  return element(
    "div",
    {},
    element("div", { className: "bar" }, choose, copy),
    element("pre", { tabIndex: 0, ariaLabel: "Code" }, text),
  );
}
