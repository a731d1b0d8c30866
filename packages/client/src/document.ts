/**
 * An operation with the types of its variables and its result: the texts of `@plat/client/documents`, and documents
 * of code generators and of gql.tada, which have the same marker.
 */
export type TypedDocument<Result, Variables> = (string | { toString(): string } | DocumentTree) & {
  readonly __apiType?: (variables: Variables) => Result;
};

/** The properties of a parsed document of `graphql` that are used here. */
export interface DocumentTree {
  readonly kind: "Document";
  readonly loc?: { readonly source: { readonly body: string } };
}

const isTree = (document: unknown): document is DocumentTree =>
  typeof document === "object" && document !== null && (document as DocumentTree).kind === "Document";

/**
 * The text of a document.
 * @param print converts a parsed document into its text, such as `print` of `graphql`; required if the document does
 * not keep its source
 * @throws TypeError for a parsed document without its source if `print` is omitted
 */
export function textOf(
  document: string | { toString(): string } | DocumentTree,
  print: ((document: never) => string) | undefined,
): string {
  if (!isTree(document)) return String(document);
  if (print) return print(document as never);
  const text = document.loc?.source.body;
  if (text === undefined)
    throw new TypeError(
      "The document is parsed and without its source: give createClient `print` of graphql.",
    );
  return text;
}

/** Whether a text may contain a mutation. A query whose text contains the word counts as one, which is harmless. */
export const mayChange = (text: string): boolean => /\bmutation\b/.test(text);
