import { GraphQLError, Lexer, Source, TokenKind } from "postgraphile/graphql";
import { queryLimits } from "../admission/queryLimits.ts";

const opening = new Set<string>([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const closing = new Set<string>([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Counts the tokens of a document before the recursive parser runs, up to the limits.
 * @returns the limit that is exceeded; undefined if none is, or if the text is not a valid document, which the parser
 * reports
 */
export function scanTokens(query: string): "tokens" | "characters" | "nesting" | undefined {
  // A token has at least one character, so a short document cannot exceed either limit.
  if (query.length <= queryLimits.nesting) return undefined;
  if (query.length > queryLimits.characters) return "characters";
  const lexer = new Lexer(new Source(query));
  let nesting = 0;
  try {
    for (let tokens = 1; ; tokens++) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) return undefined;
      if (tokens > queryLimits.tokens) return "tokens";
      if (opening.has(kind)) nesting++;
      else if (closing.has(kind)) nesting--;
      if (nesting > queryLimits.nesting) return "nesting";
    }
  } catch (error) {
    if (error instanceof GraphQLError) return undefined;
    throw error;
  }
}
