/** Documents requested by id: registered at a release with `npm run documents`; see docs/queries.md. */
import { CodedError } from "../base/errors.ts";
import { documentLookups } from "../admission/semaphores.ts";
import type { Party } from "../admission/party.ts";
import type { AskedRequest, GraphQLRequest } from "./graphqlRequest.ts";

/** Replaces the id by its document. */
export interface TrustedDocuments {
  /**
   * @throws CodedError NOT_FOUND for an unknown id; FORBIDDEN for a document sent as text if only registered ones are
   * accepted
   */
  resolve(received: AskedRequest, party: Party): Promise<GraphQLRequest>;
  /**
   * The same without waiting.
   * @returns undefined if the document has to be looked up, or refused
   */
  known(received: AskedRequest): GraphQLRequest | undefined;
}

/** Valid document ids. */
export const documentIdForm = /^[A-Za-z0-9:_-]{1,128}$/;

/** Maximum characters of cached documents. */
const MOST_CHARACTERS = 8_000_000;

/** @param options.find the text of a document; undefined for an unknown id. */
export function createTrustedDocuments(options: {
  find(id: string): Promise<string | undefined>;
  /** Documents that need not be registered, by id. Default: none. */
  own?: ReadonlyMap<string, string>;
  /** Whether other documents are refused. */
  only: boolean;
}): TrustedDocuments {
  /** The document of an id never changes. Least recently used first. */
  const known = new Map<string, string>();
  let characters = 0;
  /** Lookups in progress: concurrent requests for the same id share one query. */
  const running = new Map<string, Promise<string | undefined>>();

  const keep = (id: string, text: string): void => {
    known.set(id, text);
    characters += text.length;
    while (characters > MOST_CHARACTERS) {
      const [oldest, dropped] = known.entries().next().value!;
      known.delete(oldest);
      characters -= dropped.length;
    }
  };

  const lookUp = (id: string, party: Party): Promise<string | undefined> => {
    const under = running.get(id);
    if (under) return under;
    const looking = documentLookups.run(party, () => options.find(id)).finally(() => running.delete(id));
    running.set(id, looking);
    return looking;
  };

  const knownText = ({ documentId, query }: AskedRequest): string | undefined => {
    if (query !== undefined) return options.only ? undefined : query;
    return options.own?.get(documentId ?? "") ?? known.get(documentId ?? "");
  };
  const withText = (
    { variables, operationName, extensions }: AskedRequest,
    query: string,
  ): GraphQLRequest => ({ query, variables, operationName, extensions });

  return {
    known(received) {
      const text = knownText(received);
      return text === undefined ? undefined : withText(received, text);
    },
    async resolve(received, party) {
      const before = knownText(received);
      if (before !== undefined) return withText(received, before);
      if (received.query !== undefined)
        throw new CodedError(
          "FORBIDDEN",
          "This service only accepts registered documents: send the id of a registered document as documentId instead of query.",
          { field: "query" },
        );
      const id = received.documentId ?? "";
      const found = documentIdForm.test(id) ? await lookUp(id, party) : undefined;
      if (found === undefined)
        throw new CodedError(
          "NOT_FOUND",
          "No document is registered under this id. Register the documents of a release with npm run documents, or send the document as query.",
          { field: "documentId" },
        );
      if (!known.has(id)) keep(id, found);
      return withText(received, found);
    },
  };
}

/** Without registered documents. */
export const noTrustedDocuments = createTrustedDocuments({ find: async () => undefined, only: false });
