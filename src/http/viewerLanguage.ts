import type { Request } from "express";
import { claimsOf } from "./requestState.ts";
import type { Language } from "../messages/catalogue.ts";
import { acceptedLanguage, languageOf } from "../messages/language.ts";

/**
 * Time limit for reading a user's language, in milliseconds. The message may report that the database does not respond.
 */
const LANGUAGE_MS = 1_000;

/** Finds the language that a user has chosen. */
export type LanguageOfUser = (userId: string) => Promise<string | null | undefined>;

/**
 * Language of messages to the viewer: that of the user, otherwise the header `Accept-Language`, otherwise English.
 * Immediate for visitors; without the user's choice if the database does not return it within a second.
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

/** The same, determined at most once per request. */
export function viewerLanguageOnce(
  request: Request,
  ofUser?: LanguageOfUser,
): () => Language | Promise<Language> {
  let found: Language | Promise<Language> | undefined;
  return () => (found ??= viewerLanguage(request, ofUser));
}
