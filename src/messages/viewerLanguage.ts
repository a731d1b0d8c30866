import type { Request } from "express";
import { claimsOf } from "../http/requestState.ts";
import type { Language } from "./catalogue.ts";
import { acceptedLanguage, languageOf } from "./language.ts";

/** Finds the language that a user has chosen. */
export type LanguageOfUser = (userId: string) => Promise<string | null | undefined>;

/**
 * The language of messages to whoever asks: that of the user, else of the header `Accept-Language`, else English.
 * At once where nobody is signed in.
 */
export function viewerLanguage(request: Request, ofUser?: LanguageOfUser): Language | Promise<Language> {
  const userId = claimsOf(request)?.userId;
  const accepted = acceptedLanguage(request.headers["accept-language"]) ?? "en";
  if (!userId || !ofUser) return accepted;
  return ofUser(userId).then(
    (own) => languageOf(own) ?? accepted,
    // A database that does not answer is what the message may be about.
    () => accepted,
  );
}

/** The same, asked for at most once for a request. */
export function viewerLanguageOnce(
  request: Request,
  ofUser?: LanguageOfUser,
): () => Language | Promise<Language> {
  let found: Language | Promise<Language> | undefined;
  return () => (found ??= viewerLanguage(request, ofUser));
}
