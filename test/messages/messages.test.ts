/**
 * Messages in each language, and the keys by which clients translate. `npm run check` compares the catalogues with
 * all messages in the sources.
 */
import { describe, expect, test } from "@jest/globals";
import { differences, withoutKey } from "../../src/checks/checkMessages.ts";
import { catalogues } from "../../src/messages/catalogue.ts";
import { acceptedLanguage, languageOf } from "../../src/messages/language.ts";
import { localize } from "../../src/messages/recognize.ts";
import { codeMessages, pageMessages } from "../../src/messages/sourceMessages.ts";
import { localizeErrors } from "../../src/messages/localizeErrors.ts";

describe("a message", () => {
  test("has a key and a text in each language", () => {
    const english = "There is no such project.";
    const translations = (["en", "fr", "de", "es"] as const).map((language) => localize(english, language));
    expect(translations.map(({ message }) => message)).toEqual([
      english,
      "Ce projet n'existe pas.",
      "Dieses Projekt gibt es nicht.",
      "Este proyecto no existe.",
    ]);
    expect(new Set(translations.map(({ key }) => key))).toEqual(new Set(["thereIsNoSuchProject"]));
  });

  test("keeps its parameters; terms are translated, names of the API are not", () => {
    expect(localize("There is no such floor plan.", "de")).toEqual({
      key: "thereIsNoSuch",
      parameters: ["floor plan"],
      message: "Nicht gefunden: Grundriss.",
    });
    expect(localize("The buyer is CLOSED and cannot become DRAFT.", "fr")).toEqual({
      key: "aThatIsCannotBecome",
      parameters: ["buyer", "CLOSED", "DRAFT"],
      message: "acheteur : le passage de CLOSED à DRAFT n'est pas possible.",
    });
  });

  test("inside another message is translated as well", () => {
    expect(
      localize(
        'Variable "$input.email" has an invalid value: Not a valid email address; use one such as ada@example.com.',
        "es",
      ).message,
    ).toBe(
      "La variable «$input.email» tiene un valor no válido: Esto no es una dirección de correo; dé una como ada@example.com.",
    );
  });

  test("that is not in the catalogue remains English, without a key", () => {
    expect(localize("Out of paper.", "fr")).toEqual({
      key: undefined,
      parameters: [],
      message: "Out of paper.",
    });
  });

  test("of many characters is recognized in linear time", () => {
    const value = "The {0} is and cannot become ".repeat(20_000);
    expect(localize(`The ${value} is ${value} and cannot become ${value}.`, "fr").key).toBe(
      "aThatIsCannotBecome",
    );
  });

  test("has no indefinite article before a parameter: a or an depends on its value", () => {
    const texts = Object.values(catalogues.en).flatMap((section) => Object.values(section));
    expect(texts.filter((text) => /\ban? \{\d/i.test(text))).toEqual([]);
  });
});

describe("the language", () => {
  test.each([
    ["fr-CA,fr;q=0.9,en;q=0.8", "fr"],
    ["it, de-AT;q=0.7, en;q=0.3", "de"],
    ["en;q=0.2, es", "es"],
    ["fr;q=0, *;q=0.1", "en"],
    ["it", undefined],
    ["", undefined],
    [undefined, undefined],
    ["fr,".repeat(300), undefined],
  ])("of the header %j is %s", (header, language) => {
    expect(acceptedLanguage(header)).toBe(language);
  });

  test("of a tag is the closest one with a catalogue", () => {
    expect(["de-CH", "ES", "pt-BR", null].map(languageOf)).toEqual(["de", "es", undefined, undefined]);
  });
});

describe("errors", () => {
  test("list all invalid fields of unreadable input, at the first of them", () => {
    const errors = ["email", "phone"].map((field) => ({
      message: `Variable "$input.${field}" has an invalid value: Must be a whole number.`,
      extensions: { code: "BAD_USER_INPUT", field } as Record<string, unknown>,
    }));
    localizeErrors(errors, "de");
    expect(errors[0]!.extensions).toMatchObject({ field: "email", key: "variableHasAnInvalidValue" });
    expect((errors[0]!.extensions.fields as { path: string }[]).map(({ path }) => path)).toEqual([
      "email",
      "phone",
    ]);
    expect(errors[0]!.message).toContain("Geben Sie eine ganze Zahl an.");
  });

  test("of other kinds have a key and no fields", () => {
    const error = {
      message: "You do not have permission to do this.",
      path: ["x"],
      extensions: { code: "FORBIDDEN" },
    };
    localizeErrors([error], "en");
    expect(error.extensions).toEqual({ code: "FORBIDDEN", key: "youDoNotHavePermissionTo" });
  });
});

describe("the catalogues", () => {
  test("have the same messages with the same parameters", () => {
    expect(differences()).toEqual([]);
  });

  test("have the messages of the code", () => {
    expect(codeMessages().length).toBeGreaterThan(100);
    expect(withoutKey(codeMessages())).toEqual([]);
    expect(pageMessages().length).toBeGreaterThan(15);
    expect(withoutKey(pageMessages(), "mails")).toEqual([]);
  });

  test("are reported if a message lacks a key, a translation or a parameter", () => {
    expect(withoutKey([{ text: "The moon is {} far.", place: "app_hidden.moon()" }])).toMatchObject([
      { rule: "message-without-key", object: "app_hidden.moon()" },
    ]);
    const { de } = catalogues;
    const { thereIsNoSuchProject: _, ...errors } = de.errors;
    const found = differences({
      ...catalogues,
      de: { ...de, errors: { ...errors, thereIsNoSuch: "Nicht gefunden.", moon: "Mond" } },
    });
    expect(found.map(({ rule, object }) => `${rule} ${object}`).toSorted()).toEqual([
      "message-beyond-english de.json errors.moon",
      "message-with-other-places de.json errors.thereIsNoSuch",
      "message-without-translation de.json errors.thereIsNoSuchProject",
    ]);
  });
});
