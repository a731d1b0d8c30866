/**
 * An operation that knows the types of its variables and its result: the texts of `@plat/client/documents`, and those of compilers of
 * clients and of gql.tada, which have the same mark.
 */
export type TypedDocument<Result, Variables> = (string | { toString(): string } | DocumentTree) & {
  readonly __apiType?: (variables: Variables) => Result;
};

/** A parsed document of `graphql`, as far as it is looked at here. */
export interface DocumentTree {
  readonly kind: "Document";
  readonly loc?: { readonly source: { readonly body: string } };
}

const isTree = (document: unknown): document is DocumentTree =>
  typeof document === "object" && document !== null && (document as DocumentTree).kind === "Document";

/**
 * The text of a document.
 * @param print turns a parsed document into its text: that of `graphql`; needed where the document does not keep its source
 * @throws TypeError for a parsed document without its source where `print` is omitted
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

/** Whether a text may hold a mutation. A query in whose text the word occurs is taken for one, which does no harm. */
export const mayChange = (text: string): boolean => /\bmutation\b/.test(text);
