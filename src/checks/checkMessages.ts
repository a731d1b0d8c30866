import type { ClientBase } from "pg";
import { catalogues, languages, placeholdersOf, type Section } from "../messages/catalogue.ts";
import {
  codeMessages,
  databaseMessages,
  pageMessages,
  type SourceMessage,
} from "../messages/sourceMessages.ts";
import type { Finding } from "./rule.ts";

const folder = "src/messages/catalogue";

/** The text without the names of its placeholders, as in sentences of functions. */
const nameless = (text: string) => text.replace(/\{\w+\}/g, "{}");

/** Messages of functions, constraints and the code without a key. */
export function withoutKey(
  messages: readonly SourceMessage[],
  section: Exclude<Section, "terms"> = "errors",
): Finding[] {
  const known = new Set(Object.values(catalogues.en[section]).map(nameless));
  const found = new Map(
    messages.filter(({ text }) => !known.has(text)).map((message) => [message.text, message]),
  );
  return [...found.values()].map(({ text, place }) => ({
    rule: "message-without-key",
    object: place,
    write: `Add "${text}" with a key to ${section} in ${folder}/en.json, with {0}, {1} … for each {}, and to the other languages; or replace the text of its old key.`,
  }));
}

/** Keys that a language lacks or has in addition to English, and texts with other placeholders than the English one. */
export function differences(of = catalogues): Finding[] {
  return languages
    .filter((language) => language !== "en")
    .flatMap((language) =>
      (["errors", "terms", "mails"] as Section[]).flatMap((section) => {
        const english = of.en[section];
        const texts = of[language][section];
        return [...new Set([...Object.keys(english), ...Object.keys(texts)])].flatMap((key): Finding[] => {
          const object = `${language}.json ${section}.${key}`;
          const [there, text] = [english[key], texts[key]];
          if (there === undefined)
            return [{ rule: "message-beyond-english", object, write: "Remove it: en.json has no such key." }];
          if (text === undefined || text.trim() === "")
            return [{ rule: "message-without-translation", object, write: `Translate "${there}".` }];
          if (placeholdersOf(there).join() !== placeholdersOf(text).join())
            return [
              {
                rule: "message-with-other-places",
                object,
                write: `Use the parameters of "${there}": ${placeholdersOf(there).join(", ") || "none"}.`,
              },
            ];
          return [];
        });
      }),
    );
}

/** Findings about the catalogues of messages. */
export async function checkMessages(client: ClientBase): Promise<Finding[]> {
  return [
    ...withoutKey([...(await databaseMessages(client)), ...codeMessages()]),
    ...withoutKey(pageMessages(), "mails"),
    ...differences(),
  ];
}
