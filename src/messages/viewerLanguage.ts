import type { Request } from "express";
import { claimsOf } from "../http/requestState.ts";
import type { Language } from "./catalogue.ts";
import { acceptedLanguage, languageOf } from "./language.ts";

/** Finds the language that a user has chosen. */
export type LanguageOfUser = (userId: string) => Promise<string | null | undefined>;

/** The language of messages to whoever asks: that of the user, else of the header `Accept-Language`, else English. */
export async function viewerLanguage(request: Request, ofUser?: LanguageOfUser): Promise<Language> {
  const userId = claimsOf(request)?.userId;
  // A database that does not answer is what the message may be about.
  const own = userId && ofUser ? await ofUser(userId).catch(() => undefined) : undefined;
  return languageOf(own) ?? acceptedLanguage(request.headers["accept-language"]) ?? "en";
}
