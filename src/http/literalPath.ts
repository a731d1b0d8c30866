import { type ASTNode, type GraphQLError, Kind, parse, visit } from "postgraphile/graphql";

/**
 * Path of the argument or input field whose literal a validation error refers to: `createLead(input: {email: 1})`
 * returns `input.email`. Undefined if the error is not about a value.
 */
export function literalPath(error: GraphQLError): string | undefined {
  const [node] = error.nodes ?? [];
  const at = node?.loc?.start;
  const source = node?.loc?.source;
  if (!node || at === undefined || !source || !isValue(node)) return undefined;
  const path: string[] = [];
  let found: string | undefined;
  visit(parse(source), {
    enter(visited) {
      if (visited.kind === Kind.ARGUMENT || visited.kind === Kind.OBJECT_FIELD) path.push(visited.name.value);
      if (found === undefined && visited.kind === node.kind && visited.loc?.start === at)
        found = path.join(".");
    },
    leave(visited) {
      if (visited.kind === Kind.ARGUMENT || visited.kind === Kind.OBJECT_FIELD) path.pop();
    },
  });
  return found || undefined;
}

const valueKinds = new Set<string>([
  Kind.VARIABLE,
  Kind.INT,
  Kind.FLOAT,
  Kind.STRING,
  Kind.BOOLEAN,
  Kind.NULL,
  Kind.ENUM,
  Kind.LIST,
  Kind.OBJECT,
  Kind.OBJECT_FIELD,
]);
const isValue = (node: ASTNode) => valueKinds.has(node.kind);
