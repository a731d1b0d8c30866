/** Error messages: all invalid fields of an input at once, with keys, in the language of the viewer. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { mutationOf } from "../harness/records.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const CREATE_LEAD = mutationOf("createLead", "{ id }");
const CREATE_CONTACT = mutationOf("createFloorPlan", "{ id }");
const CREATE_ACCOUNT = mutationOf("createAccount", "{ id }");

/** The first error of a request in the given language. */
async function refusal(person: Person, query: string, input: object, language?: string) {
  const headers: Record<string, string> = language ? { "accept-language": language } : {};
  const { errors } = await person.ask(query, { input }, { headers });
  const { message, extensions } = errors![0]!;
  return { message, ...extensions } as Record<string, any> & { message: string };
}
const speak = (person: Person, language: string) =>
  person.get(mutationOf("updateUser", "{ language }"), { input: { id: person.id, language } });
const pathsOf = ({ fields }: Record<string, any>) => fields.map(({ path }: { path: string }) => path);

describe("invalid fields", () => {
  test("of columns are reported together: those of types and those of checks", async () => {
    const input = {
      projectId: world.project.id,
      title: "x".repeat(301),
      bedrooms: 120,
      sqft: 0,
      description: "y".repeat(20_001),
      code: "A1",
    };
    const error = await refusal(world.owen, CREATE_CONTACT, input);
    expect(pathsOf(error).toSorted()).toEqual(["bedrooms", "description", "sqft", "title"]);
    expect(error).toMatchObject({ code: "BAD_USER_INPUT", field: error.fields[0].path });
    expect(error.fields).toContainEqual({
      path: "bedrooms",
      key: "give0To99Bedrooms",
      message: "Must be from 0 to 99 bedrooms.",
    });
    // A field that was valid alone is accepted.
    expect(error.message).toBe(error.fields[0].message);
  });

  test("of an update are reported together with those that must not be null", async () => {
    const { createFloorPlan: plan } = await world.owen.get(CREATE_CONTACT, {
      input: { projectId: world.project.id, title: "Studio" },
    });
    const error = await refusal(world.owen, mutationOf("updateFloorPlan", "{ id }"), {
      id: plan.id,
      title: null,
      baths: 100,
    });
    expect(error).toMatchObject({
      field: "title",
      fields: [
        { path: "title", key: "mayNotBeNullLeaveIt", parameters: ["title"] },
        { path: "baths", key: "give0To99Baths" },
      ],
    });
  });

  test("of the arguments of a function are reported together", async () => {
    const error = await refusal(world.anonymous, mutationOf("contactProject", "{ id }"), {
      projectId: world.project.id,
      name: "Mira",
      email: "nobody",
      phone: "1".repeat(60),
    });
    expect(pathsOf(error)).toEqual(["email", "phone"]);
    expect(error.field).toBe("email");
  });

  test("of the wrong type are reported together", async () => {
    const error = await refusal(world.owen, CREATE_CONTACT, {
      projectId: world.project.id,
      title: 7,
      bedrooms: "two",
      colour: "red",
    });
    expect(pathsOf(error).toSorted()).toEqual(["bedrooms", "colour", "title"]);
    expect(error).toMatchObject({ code: "BAD_USER_INPUT", key: "variableHasAnInvalidValue" });
  });

  test("a function reports the error that it raised", async () => {
    const error = await refusal(world.owen, CREATE_LEAD, {
      projectId: world.project.id,
      name: "Bo",
      registeredAt: "2999-01-01T00:00:00Z",
    });
    expect(error).toMatchObject({
      field: "registeredAt",
      fields: [{ path: "registeredAt", key: "aLeadCannotBeRegisteredIn" }],
    });
  });
});

describe("the language of messages", () => {
  const noProject = (person: Person, language?: string) =>
    refusal(person, CREATE_LEAD, { projectId: "no-such-project", name: "Bo" }, language);

  test("is that of the header for visitors; English if no requested language exists", async () => {
    const ask = async (language?: string) =>
      (
        await refusal(
          world.anonymous,
          CREATE_ACCOUNT,
          { email: "a@example.com", password: "short" },
          language,
        )
      ).message;
    expect(await ask("de-AT,en;q=0.5")).toBe("Ein Passwort hat 10 oder mehr Zeichen.");
    expect(await ask("es")).toBe("Una contraseña tiene 10 caracteres o más.");
    expect(await ask("it")).toBe("A password must have at least 10 characters.");
  });

  test("is that of the user, regardless of the header", async () => {
    await speak(world.max, "fr-CA");
    expect(await noProject(world.max, "de")).toMatchObject({
      code: "NOT_FOUND",
      key: "thereIsNoSuchProject",
      message: "Ce projet n'existe pas.",
    });
    expect((await noProject(world.ada, "de")).message).toBe("There is no such project.");
  });

  test("applies to fields too; their keys and parameters do not change", async () => {
    await speak(world.max, "de");
    const error = await refusal(world.max, mutationOf("updateLead", "{ id }"), {
      id: "0197f000-0000-7000-8000-000000000000",
      name: 5,
    });
    expect(error.fields).toEqual([
      {
        path: "name",
        key: "variableHasAnInvalidValue",
        parameters: ["input.name", "String cannot represent a non string value: 5"],
        message:
          "Die Variable „$input.name“ hat einen ungültigen Wert: String kann keinen Wert darstellen, der kein Text ist: 5",
      },
    ]);
  });

  test("is that of the header for refusals before the operation starts", async () => {
    const answer = await world.post("{}", { "content-type": "application/json", "accept-language": "fr" });
    expect(answer.errors![0]!.message).toBe("Le membre query doit être un texte, le document GraphQL.");
    const { errors } = await world
      .person("nonsense")
      .ask("{ viewer { id } }", {}, { headers: { "accept-language": "es" } });
    expect(errors![0]!.message).toBe("El token es desconocido; inicie sesión de nuevo.");
  });

  test("of a new account is that of the browser; of a new organization, that of its founder", async () => {
    const email = "francine@example.com";
    await world.anonymous.ask(
      CREATE_ACCOUNT,
      { input: { email, password: "correct horse battery" } },
      { headers: { "accept-language": "fr-FR,fr;q=0.9" } },
    );
    const { rows } = await world.owner.query(
      "select language from app_public.users where id = app_private.account_named($1)",
      [email],
    );
    expect(rows).toEqual([{ language: "fr" }]);
    await speak(world.ada, "es");
    const { createOrganization } = await world.ada.get(mutationOf("createOrganization", "{ id language }"), {
      input: { name: "Casa Clara" },
    });
    expect(createOrganization.language).toBe("es");
    const update = mutationOf("updateOrganization", "{ language }");
    const input = { id: createOrganization.id, language: "de" };
    expect((await world.ada.get(update, { input })).updateOrganization).toEqual({ language: "de" });
    expect(await world.olga.refused(update, { input })).toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("messages in data", () => {
  const UPSERT = mutationOf(
    "upsertLeads",
    "{ rows { outcome code warnings errors { code field message } } }",
  );
  const leads = [
    { externalId: "1", name: "Ann", email: "nobody" },
    { externalId: "2", name: "Bob", status: "CONVERTED" },
    { externalId: "3", name: "Cy", source: "nowhere" },
  ];
  const ask = async (headers: Record<string, string> = {}) => {
    const input = { projectId: world.project.id, system: "crm", leads, dryRun: true };
    const { data, errors } = await world.owen.ask(UPSERT, { input }, { headers });
    expect(errors).toBeUndefined();
    return data.upsertLeads.rows.map((row: any) => row.errors.map((error: any) => error.message)).flat();
  };

  test("errors of rows are translated into the language of the viewer", async () => {
    await speak(world.owen, "en");
    const english = await ask();
    expect(english.length).toBeGreaterThanOrEqual(3);
    const seen = new Set(english);
    for (const language of ["fr", "de", "es"]) {
      await speak(world.owen, language);
      const translated = await ask();
      expect(translated).toHaveLength(english.length);
      for (const message of translated) {
        expect(seen).not.toContain(message);
        seen.add(message);
      }
    }
    expect([...seen].join("\n")).toMatch(
      /Diese Lead-Quelle gibt es in diesem Projekt nicht\. .*createLeadSource/,
    );
    await speak(world.owen, "en");
  });
});
