/**
 * Localizes sentences in data, such as why a row of an import is refused. The database returns them in English, like
 * error messages.
 */
import { context, lambda } from "postgraphile/grafast";
import type { Language } from "../messages/catalogue.ts";
import { localize } from "../messages/recognize.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LocalizedTextsPlugin: true;
    }
  }
}

/** Fields with sentences, by type. */
const localizedFields: Readonly<Record<string, readonly string[]>> = {
  ImportRowError: ["message"],
  LeadRowError: ["message"],
  LeadRowResult: ["warnings"],
  CancellationEffect: ["reason"],
};

type Texts = string | readonly string[] | null | undefined;

const inLanguage = (texts: Texts, language: Language): Texts =>
  typeof texts === "string"
    ? localize(texts, language).message
    : texts?.map((text) => localize(text, language).message);

export const LocalizedTextsPlugin: GraphileConfig.Plugin = {
  name: "LocalizedTextsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        after: ["default"],
        callback(field, _build, { Self, scope: { fieldName } }) {
          if (!localizedFields[Self.name]?.includes(fieldName)) return field;
          const { plan = ($row) => $row.get(fieldName) } = field;
          return {
            ...field,
            plan: (...values: Parameters<NonNullable<typeof plan>>) =>
              lambda(
                [plan(...values), context().get("language")],
                // The language is only determined if there is something to translate.
                async ([found, language]) => {
                  const texts = found as Texts;
                  return texts?.length ? inLanguage(texts, (await language?.()) ?? "en") : texts;
                },
              ),
          };
        },
      },
    },
  },
};
