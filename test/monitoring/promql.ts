import { parser } from "@prometheus-io/lezer-promql";

/**
 * The metrics that an expression reads, with the labels that it uses of each.
 * @param text PromQL, also with the variables of a Grafana dashboard.
 * @throws if it is not valid PromQL
 */
export function metricsOf(text: string): { name: string; labels: string[] }[] {
  const expression = text.replaceAll("$__rate_interval", "5m");
  const found: { name: string; labels: string[] }[] = [];
  parser.parse(expression).iterate({
    enter(node) {
      if (node.type.isError) throw new Error(`No PromQL at ${node.from}: ${expression}`);
      const part = expression.slice(node.from, node.to);
      if (node.name === "Identifier" && node.matchContext(["VectorSelector"]))
        found.push({ name: part, labels: [] });
      else if (node.name === "LabelName" && node.matchContext(["UnquotedLabelMatcher"]))
        found.at(-1)!.labels.push(part);
    },
  });
  return found;
}
