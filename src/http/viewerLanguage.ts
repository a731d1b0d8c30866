import type { Request } from "express";
import { claimsOf } from "./requestState.ts";
import type { Language } from "../messages/catalogue.ts";
import { acceptedLanguage, languageOf } from "../messages/language.ts";

/** How long the language of a user is waited for, in milliseconds: a database that is silent is what the message may be about. */
const LANGUAGE_MS = 1_000;

/** Finds the language that a user has chosen. */
export type LanguageOfUser = (userId: string) => Promise<string | null | undefined>;

/**
 * The language of messages to whoever asks: that of the user, else of the header `Accept-Language`, else English.
 * At once where nobody is signed in; without that of the user, where the database does not give it within a second.
 */
export function viewerLanguage(request: Request, ofUser?: LanguageOfUser): Language | Promise<Language> {
  const userId = claimsOf(request)?.userId;
  const accepted = acceptedLanguage(request.headers["accept-language"]) ?? "en";
  if (!userId || !ofUser) return accepted;
  const late = Promise.withResolvers<Language>();
  const timer = setTimeout(late.resolve, LANGUAGE_MS, accepted);
  const own = ofUser(userId).then(
    (chosen) => languageOf(chosen) ?? accepted,
    () => accepted,
  );
  return Promise.race([own, late.promise]).finally(() => clearTimeout(timer));
}

/** The same, asked for at most once for a request. */
export function viewerLanguageOnce(
  request: Request,
  ofUser?: LanguageOfUser,
): () => Language | Promise<Language> {
  let found: Language | Promise<Language> | undefined;
  return () => (found ??= viewerLanguage(request, ofUser));
}
