/** Multipart requests: who may send them, order and number of parts, and files that are refused or truncated. */
import { once } from "node:events";
import { request as ask } from "node:https";
import { connect } from "node:tls";
import { PassThrough, type Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "@jest/globals";
import { CodedError } from "../../src/base/errors.ts";
import { RefusedFile } from "../../src/files/uploadedFile.ts";
import { multipartLimits, readMultipart, type TakeFile } from "../../src/http/multipart.ts";
import type { AppDeps } from "../../src/http/app.ts";
import { beginRequest, requestState, type RequestState } from "../../src/http/requestState.ts";
import { createTrustedDocuments } from "../../src/http/trustedDocuments.ts";
import { uploads, type UploadDeps } from "../../src/http/uploads.ts";
import { until } from "../harness/until.ts";
import { startServer, tokens } from "./server.ts";

type Part = [name: string, text: string | Buffer, filename?: string];
const boundary = "frontier";

/** A multipart body; parts of files have a file name. */
function body(parts: readonly Part[], end = `--${boundary}--\r\n`): Buffer {
  const texts = parts.flatMap(([name, text, filename]) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? "" : `; filename="${filename}"\r\nContent-Type: text/plain`}\r\n\r\n`,
    ),
    Buffer.from(text),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...texts, Buffer.from(end)]);
}

const operations = (variables: unknown = { input: { file: null } }, more = {}) =>
  JSON.stringify({ query: "mutation ($input: I) { a(input: $input) }", variables, ...more });
const map = (paths: unknown = { 0: ["variables.input.file"] }) => JSON.stringify(paths);
const sound: Part[] = [
  ["operations", operations()],
  ["map", map()],
  ["0", "content", "häuser.txt"],
];

interface Known {
  taken: { text: string; name: string | undefined; kind: string }[];
  admitted: Record<string, any>[];
  done: number;
  released: string[][];
  /** The bodies that were passed to GraphQL. */
  passed: any[];
  /** Of their requests. */
  states: Partial<RequestState>[];
}

/** A server that stores no files; the functions of files can be replaced. */
async function uploading(
  files: Partial<UploadDeps["files"]> = {},
  deps: Partial<UploadDeps> = {},
  { running, ...others }: Partial<AppDeps> & { running?: Promise<unknown> } = {},
) {
  const known: Known = { taken: [], admitted: [], done: 0, released: [], passed: [], states: [] };
  const server = await startServer({
    uploads: {
      files: {
        admit: async (upload) => {
          known.admitted.push(upload);
          upload.sent.push("c0ffee");
          return { upload, organizationId: null, quota: 1, done: () => void known.done++ };
        },
        take: async (file, kind, name) => {
          const text = (await buffer(file)).toString();
          known.taken.push({ text, name, kind });
          return { checksum: text } as never;
        },
        release: async (sent) => void known.released.push([...sent]),
        ...files,
      },
      places: async ({ variables }) =>
        new Map(
          ["variables.input.file", "variables.input.other", "variables.file"].map((path) => [
            path,
            {
              kind: "storeFile" as never,
              target: "t",
              input: (variables?.input ?? {}) as Record<string, unknown>,
            },
          ]),
        ),
      settings: () => ({ role: "plat_user" }),
      ...deps,
    },
    beforeGraphql: [
      (request, _response, next) => {
        known.passed.push(request.body);
        const state = requestState(request);
        known.states.push({ operationName: state.operationName, bodyBytes: state.bodyBytes });
        if (running) {
          state.running = running;
          return;
        }
        expect(request.headers["content-type"]).toBe("application/json");
        next();
      },
    ],
    ...others,
  });
  const headers = (more: Record<string, string | undefined> = {}) =>
    Object.fromEntries(
      Object.entries({
        "content-type": `multipart/form-data; boundary=${boundary}`,
        "graphql-preflight": "1",
        authorization: `Bearer ${tokens.good}`,
        ...more,
      }).filter(([, value]) => value !== undefined),
    ) as Record<string, string>;
  return {
    server,
    known,
    headers,
    send: (parts: readonly Part[] | Buffer, more: Record<string, string | undefined> = {}) =>
      server.send({ headers: headers(more), body: Buffer.isBuffer(parts) ? parts : body(parts) }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
type Uploading = Awaited<ReturnType<typeof uploading>>;

const refusal = ({ status, json }: Awaited<ReturnType<Uploading["send"]>>) => {
  const { code, field } = json.errors[0].extensions;
  return [status, code, field, json.errors[0].message];
};
const badOrder = "Send the parts operations and map first, and then the files that map lists.";

test("a file is admitted, received and set in the variables; an unused one is released", async () => {
  await using sender = await uploading();
  const { known } = sender;
  const payload = body(sound);
  const answer = await sender.send(payload);
  expect(answer.status).toBe(200);
  expect(known.passed).toEqual([
    {
      query: "mutation ($input: I) { a(input: $input) }",
      variables: { input: { file: { checksum: "content" } } },
    },
  ]);
  expect(known.taken).toEqual([{ text: "content", name: "häuser.txt", kind: "storeFile" }]);
  expect(known.admitted).toMatchObject([
    {
      kind: "storeFile",
      target: "t",
      userId: "user-1",
      settings: { role: "plat_user" },
      atMost: payload.length,
    },
  ]);
  expect(known.done).toBe(1);
  await until(
    () => known.released,
    (released) => released.length === 1,
  );
  expect(known.released).toEqual([["c0ffee"]]);
});

test("the announced size of a single file is known before it arrives; of several files, none is", async () => {
  await using sender = await uploading();
  const large = Buffer.alloc(100_000, "a");
  await sender.send([...sound.slice(0, 2), ["0", large, "a.txt"]]);
  const { atLeast, atMost } = sender.known.admitted[0]!;
  // Bytes received with the first parts are not counted again.
  expect(atLeast).toBeGreaterThan(80_000);
  expect(atLeast).toBeLessThanOrEqual(100_000);
  expect(atMost).toBeGreaterThan(100_000);
  await sender.send(sound);
  expect(sender.known.admitted[1]!.atLeast).toBe(0);
  await sender.send([
    ["operations", operations({ input: { file: null, other: null } })],
    ["map", map({ 0: ["variables.input.file"], 1: ["variables.input.other"] })],
    ["0", large, "a.txt"],
    ["1", "b", "b.txt"],
  ]);
  expect(sender.known.admitted.slice(2).map((upload) => upload.atLeast)).toEqual([0, 0]);
  expect(sender.known.passed[2].variables.input.other).toEqual({ checksum: "b" });
});

test("one file can be used at several paths", async () => {
  await using sender = await uploading();
  await sender.send([
    ["operations", operations({ input: { file: null }, file: null }, { operationName: "x" })],
    ["map", map({ 0: ["variables.input.file", "variables.file"] })],
    ["0", "content", "a.txt"],
  ]);
  expect(sender.known.passed[0]).toMatchObject({
    operationName: "x",
    variables: { input: { file: { checksum: "content" } }, file: { checksum: "content" } },
  });
  expect(sender.known.taken).toHaveLength(1);
});

test.each(["graphql-preflight", "apollo-require-preflight", "x-requested-with"])(
  "the header %s proves that no cross-site form has sent the request",
  async (name) => {
    await using sender = await uploading();
    await sender.send(sound, { "graphql-preflight": undefined, [name]: "1" });
    expect(sender.known.taken).toHaveLength(1);
  },
);

test("requests without such a header, by visitors, compressed, or with a too large announced size are refused before a file arrives", async () => {
  await using sender = await uploading();
  expect(refusal(await sender.send(sound, { "graphql-preflight": undefined }))).toEqual([
    403,
    "FORBIDDEN",
    undefined,
    "A multipart request requires the header GraphQL-Preflight: 1, which a form on another site cannot send.",
  ]);
  expect(refusal(await sender.send(sound, { authorization: undefined }))).toEqual([
    401,
    "UNAUTHENTICATED",
    undefined,
    'Sign in first: send the header "Authorization: Bearer <token>".',
  ]);
  expect(refusal(await sender.send(sound, { "content-encoding": "gzip" }))).toEqual([
    415,
    "BAD_USER_INPUT",
    undefined,
    "Send a multipart request without Content-Encoding.",
  ]);
  await sender.send(sound, { "content-encoding": "identity" });
  expect(sender.known.taken).toHaveLength(1);
  expect(refusal(await sender.send(sound, { "content-type": "multipart/form-data" }))).toEqual([
    400,
    "BAD_USER_INPUT",
    undefined,
    "The multipart request has no boundary.",
  ]);
  expect(sender.known.admitted).toHaveLength(1);
});

test("a request with an announced size above 100 MB is refused; exactly 100 MB are accepted", async () => {
  await using sender = await uploading();
  const announced = async (length: number) => {
    const socket = connect({ host: "127.0.0.1", port: sender.server.port, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const head = Object.entries(sender.headers({ host: "localhost", "content-length": String(length) }));
    socket.write(
      `POST /graphql HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
    );
    let text = "";
    socket.on("data", (chunk) => (text += chunk)).on("error", () => {});
    return { socket, text: () => text };
  };
  const over = await announced(multipartLimits.request + 1);
  const text = await until(over.text, (answer) => answer.includes("PAYLOAD_TOO_LARGE"));
  expect(text).toMatch(/^HTTP\/1.1 413 /);
  expect(text).toContain("The request exceeds 100 MB or 10 files.");
  expect(text).toContain(`"limit":${multipartLimits.request},`);
  over.socket.destroy();
  const whole = await announced(multipartLimits.request);
  whole.socket.write(body(sound.slice(0, 2), ""));
  whole.socket.write(`--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="a"\r\n\r\nabc`);
  await until(
    () => sender.known.admitted,
    (admitted) => admitted.length === 1,
  );
  expect(whole.text()).toBe("");
  whole.socket.destroy();
});

test("content types are compared by their whole name", async () => {
  await using sender = await uploading();
  for (const type of [
    `Multipart/Form-Data ;boundary=${boundary}`,
    ` multipart/form-data;boundary=${boundary}`,
  ])
    expect([type, (await sender.send(sound, { "content-type": type })).status]).toEqual([type, 200]);
  expect(sender.known.taken).toHaveLength(2);
  for (const type of [
    `multipart/form-datax; boundary=${boundary}`,
    `x-multipart/form-data; boundary=${boundary}`,
  ])
    expect([type, (await sender.send(sound, { "content-type": type })).status]).toEqual([type, 415]);
  expect(sender.known.taken).toHaveLength(2);
});

const orders: [string, Part[], string | undefined][] = [
  ["map before operations", [sound[1]!, sound[0]!, sound[2]!], "map"],
  ["two of operations", [sound[0]!, sound[0]!, sound[1]!, sound[2]!], "operations"],
  ["two of map", [sound[0]!, sound[1]!, sound[1]!, sound[2]!], "map"],
  ["a part of another name", [sound[0]!, sound[1]!, ["else", "x"], sound[2]!], "else"],
  ["a file before map", [sound[0]!, sound[2]!, sound[1]!], "0"],
  ["a file that is not in map", [sound[0]!, sound[1]!, ["1", "x", "a.txt"]], "1"],
  ["a file twice", [...sound, sound[2]!], "0"],
];
test.each(orders)("parts must be in order: %s is refused", async (_, parts, field) => {
  await using sender = await uploading();
  expect(refusal(await sender.send(parts))).toEqual([400, "BAD_USER_INPUT", field, badOrder]);
  expect(sender.known.passed).toEqual([]);
});

test.each<[string, Part[], string | undefined, string]>([
  ["nothing", [], undefined, "The request requires the parts operations and map."],
  ["no map", [sound[0]!], undefined, "The request requires the parts operations and map."],
  ["no file", sound.slice(0, 2), "0", "The file 0 listed in map was not sent."],
])("%s is not enough", async (_, parts, field, message) => {
  await using sender = await uploading();
  expect(refusal(await sender.send(parts))).toEqual([400, "BAD_USER_INPUT", field, message]);
});

test.each([
  ["[]", "The part map must be a JSON object."],
  ["null", "The part map must be a JSON object."],
  ["1", "The part map must be a JSON object."],
  ['{"0": "variables.file"}', "Each entry of map must list paths such as variables.file."],
  ['{"0": []}', "Each entry of map must list paths such as variables.file."],
  ['{"0": [["variables.file"]]}', "Each entry of map must list paths such as variables.file."],
  ['{"0": [1]}', "Each entry of map must list paths such as variables.file."],
  ['{"0": ["variables"]}', "Each entry of map must list paths such as variables.file."],
  ['{"0": ["query"]}', "Each entry of map must list paths such as variables.file."],
  ['{"0": ["xvariables.file"]}', "Each entry of map must list paths such as variables.file."],
  ['{"0": ["variables.file", "variables.a b"]}', "Each entry of map must list paths such as variables.file."],
  [
    JSON.stringify({ 0: Array.from({ length: 11 }, (_, n) => `variables.a${n}`) }),
    "Each entry of map must list paths such as variables.file.",
  ],
])("map %s is refused", async (text, message) => {
  await using sender = await uploading();
  expect(refusal(await sender.send([sound[0]!, ["map", text], sound[2]!]))).toEqual([
    400,
    "BAD_USER_INPUT",
    "map",
    message,
  ]);
});

test("a map that is not JSON is refused", async () => {
  await using sender = await uploading();
  const [status, code, , message] = refusal(await sender.send([sound[0]!, ["map", "{"], sound[2]!]));
  expect([status, code]).toEqual([400, "BAD_USER_INPUT"]);
  expect(message).toMatch(/^The part map/);
});

test.each([
  ["the path leads nowhere", { input: {} }],
  ["there is a value", { input: { file: "x" } }],
  ["there is no object on the way", { input: null }],
  ["the way leads through a text", { input: "x" }],
  ["there are no variables", null],
])("a file requires null at its path: %s", async (_, variables) => {
  await using sender = await uploading();
  expect(refusal(await sender.send([["operations", operations(variables)], sound[1]!, sound[2]!]))).toEqual([
    400,
    "BAD_USER_INPUT",
    "map",
    "The variables must be null at variables.input.file, where the file is inserted.",
  ]);
});

test("a path only follows own properties of objects", async () => {
  await using sender = await uploading(
    {},
    { places: async () => new Map([["variables.__proto__.file", {} as never]]) },
  );
  const parts: Part[] = [
    ["operations", operations({})],
    ["map", map({ 0: ["variables.__proto__.file"] })],
    sound[2]!,
  ];
  expect(refusal(await sender.send(parts))[3]).toBe(
    "The variables must be null at variables.__proto__.file, where the file is inserted.",
  );
});

test("ten files are accepted, with ten paths each; a request with eleven is refused", async () => {
  const names = Array.from({ length: 11 }, (_, n) => String(n));
  const path = (name: string) => [`variables.input.f${name}`];
  const places = new Map(
    names.map((name) => [path(name)[0]!, { kind: "storeFile", target: "t", input: {} } as never]),
  );
  await using sender = await uploading({}, { places: async () => places });
  const parts = (amount: number): Part[] => [
    ["operations", operations({ input: Object.fromEntries(names.map((name) => [`f${name}`, null])) })],
    ["map", map(Object.fromEntries(names.slice(0, amount).map((name) => [name, path(name)])))],
    ...names.slice(0, amount).map((name): Part => [name, name, `${name}.txt`]),
  ];
  await sender.send(parts(10));
  expect(sender.known.taken.map(({ text }) => text)).toEqual(names.slice(0, 10));
  expect(refusal(await sender.send(parts(11))).slice(0, 2)).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  expect(sender.known.taken).toHaveLength(10);
  const wide = names.slice(0, 10).map((name) => `variables.input.f${name}`);
  await sender.send([parts(1)[0]!, ["map", map({ 0: wide })], ["0", "x", "x.txt"]]);
  expect(sender.known.passed[1].variables.input.f9).toEqual({ checksum: "x" });
});

test("the parts operations and map may have a megabyte each, and no more", async () => {
  await using sender = await uploading();
  const filled = (length: number) => {
    const text = operations({ input: { file: null }, filler: "" });
    return text.replace('"filler":""', `"filler":"${"a".repeat(length - text.length)}"`);
  };
  await sender.send([["operations", filled(multipartLimits.field)], sound[1]!, sound[2]!]);
  expect(sender.known.taken).toHaveLength(1);
  const over = await sender.send([["operations", filled(multipartLimits.field + 1)], sound[1]!, sound[2]!]);
  expect(refusal(over).slice(0, 2)).toEqual([413, "PAYLOAD_TOO_LARGE"]);
});

test("a refused file is an error of its field, and the others are processed", async () => {
  const reason = new CodedError("FORBIDDEN", "Not there.");
  let admitted = 0;
  await using sender = await uploading({
    admit: async (upload) => {
      if (admitted++ === 0) throw reason;
      return { upload, organizationId: null, quota: 1, done: () => {} };
    },
  });
  await sender.send([
    ["operations", operations({ input: { file: null, other: null, third: null } })],
    ["map", map({ 0: ["variables.input.file"], 1: ["variables.input.third"], 2: ["variables.input.other"] })],
    ["0", Buffer.alloc(200_000), "a.txt"],
    ["1", Buffer.alloc(200_000), "b.txt"],
    ["2", "b", "c.txt"],
  ]);
  const { file, third, other } = sender.known.passed[0].variables.input;
  expect(file).toBeInstanceOf(RefusedFile);
  expect(file.reason).toBe(reason);
  expect(third.reason).toMatchObject({
    code: "BAD_USER_INPUT",
    message: "The operation does not accept a file at variables.input.third.",
  });
  expect(other).toEqual({ checksum: "b" });
});

test("a file that is too large ends the request; the rest is read, so that the response arrives", async () => {
  let done = 0;
  await using sender = await uploading({
    admit: async (upload) => ({ upload, organizationId: null, quota: 1, done: () => void done++ }),
    take: async () => {
      throw new CodedError("PAYLOAD_TOO_LARGE", "The file exceeds 5 MB.", { limit: 5_000_000 });
    },
  });
  const answer = await sender.send([...sound.slice(0, 2), ["0", Buffer.alloc(3_000_000), "a.txt"]]);
  expect(refusal(answer)).toEqual([413, "PAYLOAD_TOO_LARGE", undefined, "The file exceeds 5 MB."]);
  expect([done, sender.known.passed.length]).toEqual([1, 0]);
});

test("an interrupted upload ends the file, and is released", async () => {
  const failed = Promise.withResolvers<Error>();
  await using sender = await uploading({
    take: async (file) => {
      await buffer(file).catch(failed.resolve);
      throw new Error("It broke off.");
    },
  });
  const socket = connect({ host: "127.0.0.1", port: sender.server.port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const head = Object.entries(sender.headers({ host: "localhost", "content-length": "1000000" }));
  socket.write(
    `POST /graphql HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
  );
  socket.write(body(sound.slice(0, 2), ""));
  socket.write(`--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="a"\r\n\r\nabc`);
  await until(
    () => sender.known.admitted,
    (admitted) => admitted.length === 1,
  );
  socket.destroy();
  expect((await failed.promise).message).toBeTruthy();
  await until(
    () => sender.known.released,
    (released) => released.length === 1,
  );
  expect(sender.known.passed).toEqual([]);
});

test("a body without its last boundary is incomplete", async () => {
  await using sender = await uploading();
  expect(refusal(await sender.send(body(sound, "")))).toEqual([
    400,
    "BAD_USER_INPUT",
    undefined,
    "The upload was interrupted; send it again.",
  ]);
  expect(sender.known.passed).toEqual([]);
});

test("files that cannot be released are left to the sweep, and logged", async () => {
  await using sender = await uploading({ release: () => Promise.reject(new Error("No connection.")) });
  await sender.server.graphql("{ ok }");
  await until(
    () => sender.server.log,
    (log) => log.some(({ event }) => event === "files.release_failed"),
  );
  expect(sender.server.log.find(({ event }) => event === "files.release_failed")).toMatchObject({
    level: 40,
    event: "files.release_failed",
  });
});

/** Reads a body without a server; returns the result, and the request afterwards. */
function reading(take: TakeFile, headers: Record<string, string> = {}) {
  const request = new PassThrough();
  const own = { "content-type": `multipart/form-data; boundary=${boundary}`, ...headers };
  const read = readMultipart(Object.assign(request, { headers: own }) as never, take);
  const outcome = read.then(
    (operationsRead) => ({ operationsRead }),
    (error: CodedError) => error as any,
  );
  return { request, outcome };
}
const keep: TakeFile = async (file) => (await buffer(file)).length;
const cut = "The upload was interrupted; send it again.";

test("a body without a boundary is refused, with the parser's reason for the log", async () => {
  const { outcome } = reading(keep, { "content-type": "multipart/form-data" });
  const { code, status, message, extensions, cause } = await outcome;
  expect({ code, status, message, extensions }).toStrictEqual({
    code: "BAD_USER_INPUT",
    status: 400,
    message: "The multipart request has no boundary.",
    extensions: {},
  });
  expect(cause).toMatchObject({ message: "Multipart: Boundary not found" });
});

test.each<[string, (request: PassThrough) => void, unknown]>([
  ["its connection breaks", (request) => void request.emit("aborted"), undefined],
  ["it cannot be read", (request) => void request.destroy(new Error("reset")), undefined],
  [
    "it ends too soon",
    (request) => void request.end(),
    expect.objectContaining({ message: "Unexpected end of form" }),
  ],
])(
  "a request is aborted when %s; its file ends with the reason, and no listeners remain",
  async (_, breakOff, cause) => {
    const file = Promise.withResolvers<Error>();
    const began = Promise.withResolvers<void>();
    const { request, outcome } = reading(async (stream) => {
      began.resolve();
      await buffer(stream).catch(file.resolve);
      throw new Error("It broke off.");
    });
    request.write(body(sound.slice(0, 2), ""));
    request.write(`--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="a"\r\n\r\nabc`);
    await began.promise;
    const listeners = ["data", "aborted"].map((event) => request.listenerCount(event));
    expect(listeners).toEqual([2, 1]);
    breakOff(request);
    const error = await outcome;
    expect([error.code, error.message, error.cause]).toEqual(["BAD_USER_INPUT", cut, cause]);
    expect(error.extensions).toStrictEqual({});
    expect((await file.promise).message).toMatch(
      /^(The request was refused\.|Unexpected end of (file|form))$/,
    );
    expect(["data", "aborted"].map((event) => request.listenerCount(event))).toEqual([0, 0]);
  },
);

test("when one file cannot be received, the others are ended before the request is refused", async () => {
  const ended: string[] = [];
  const reason = new CodedError("PAYLOAD_TOO_LARGE", "The file exceeds 5 MB.");
  const second = Promise.withResolvers<Readable>();
  const { request, outcome } = reading(async (stream, { path }) => {
    if (path === "variables.input.file") {
      await buffer(stream);
      await second.promise;
      throw reason;
    }
    second.resolve(stream);
    await buffer(stream).catch((error: Error) => void ended.push(error.message));
    return undefined;
  });
  request.write(
    body(
      [
        ["operations", operations({ input: { file: null, other: null } })],
        ["map", map({ 0: ["variables.input.file"], 1: ["variables.input.other"] })],
        ["0", "a", "a.txt"],
      ],
      "",
    ),
  );
  request.write(`--${boundary}\r\nContent-Disposition: form-data; name="1"; filename="b"\r\n\r\nabc`);
  expect(await outcome).toBe(reason);
  expect(ended).toEqual(["The request was refused."]);
  expect(request.listenerCount("data")).toBe(0);
});

test("for a single file, the number of remaining bytes is known, without the end of the request", async () => {
  const reported: number[] = [];
  const take: TakeFile = async (file, { atLeast }) => {
    reported.push(atLeast);
    return keep(file, {} as never);
  };
  const payload = body(sound);
  for (const headers of [
    { "content-length": String(payload.length + 1_000) },
    { "content-length": "1" },
    {},
  ]) {
    const { request, outcome } = reading(take, headers as Record<string, string>);
    request.end(payload);
    expect(await outcome).toEqual({ operationsRead: expect.anything() });
  }
  expect(reported).toEqual([800, 0, 0]);
});

test("a request of 100 MB is accepted, and one more byte is refused", async () => {
  const around = body([...sound.slice(0, 2), ["0", "", "a.txt"]]).length;
  const head = body(sound.slice(0, 2), "");
  const open = `--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n`;
  const piece = Buffer.alloc(5_000_000, "a");
  const send = async (size: number) => {
    let taken = 0;
    const { request, outcome } = reading(async (file) => {
      for await (const chunk of file) taken += (chunk as Buffer).length;
    });
    request.on("error", () => {});
    request.write(head);
    request.write(open);
    for (let left = size - around; left > 0; left -= piece.length) request.write(piece.subarray(0, left));
    request.end(`\r\n--${boundary}--\r\n`);
    return { outcome: await outcome, taken };
  };
  const whole = await send(multipartLimits.request);
  expect(whole).toEqual({
    outcome: { operationsRead: expect.anything() },
    taken: multipartLimits.request - around,
  });
  const { outcome: over } = await send(multipartLimits.request + 1);
  expect([over.code, over.message, over.extensions]).toEqual([
    "PAYLOAD_TOO_LARGE",
    "The request exceeds 100 MB or 10 files.",
    { limit: multipartLimits.request },
  ]);
});

test("a refusal names the part that it refers to, or none", async () => {
  const refusalOf = async (parts: readonly Part[]) => {
    const { request, outcome } = reading(keep);
    request.end(body(parts));
    const { message, extensions } = await outcome;
    return [message, extensions];
  };
  const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, n) => [n, [`variables.f${n}`]]));
  expect(await refusalOf([sound[0]!, ["map", map(eleven)]])).toStrictEqual([
    "The request exceeds 100 MB or 10 files.",
    { limit: multipartLimits.request },
  ]);
  expect(await refusalOf([])).toStrictEqual(["The request requires the parts operations and map.", {}]);
  expect(await refusalOf(sound.slice(0, 2))).toStrictEqual([
    "The file 0 listed in map was not sent.",
    { field: "0" },
  ]);
});

test("the operation of an upload has a short name in the log, and the size of its largest part", async () => {
  await using sender = await uploading();
  const named = async (operationName: string | undefined) => {
    await sender.send([
      ["operations", operations({ input: { file: null } }, operationName ? { operationName } : {})],
      ...sound.slice(1),
    ]);
    return sender.known.states.at(-1);
  };
  expect(await named("x".repeat(129))).toMatchObject({
    operationName: "x".repeat(128),
    bodyBytes: 1_000_000,
  });
  expect(await named(undefined)).toMatchObject({ operationName: undefined, bodyBytes: 1_000_000 });
});

test("a registered document is known before its files arrive", async () => {
  const asked: unknown[] = [];
  const query = "mutation ($input: I) { registered(input: $input) }";
  const documents = createTrustedDocuments({
    find: async (id) => (id === "known" ? query : undefined),
    only: false,
  });
  await using sender = await uploading(
    {},
    {
      places: async (received) => {
        asked.push(received.query);
        return new Map([["variables.input.file", { kind: "storeFile" as never, target: "t", input: {} }]]);
      },
    },
    { documents },
  );
  const send = (documentId: string) =>
    sender.send([
      ["operations", JSON.stringify({ documentId, variables: { input: { file: null } } })],
      ...sound.slice(1),
    ]);
  expect((await send("known")).status).toBe(200);
  expect(asked).toEqual([query]);
  expect(sender.known.passed).toMatchObject([
    { query, variables: { input: { file: { checksum: "content" } } } },
  ]);
  expect((await send("unknown")).json.errors[0].extensions.code).toMatch(/NOT_FOUND|BAD_USER_INPUT/);
  expect(sender.known.passed).toHaveLength(1);
});

test("files are released after the operation that may refer to them, even if its client has left", async () => {
  const running = Promise.withResolvers<void>();
  await using sender = await uploading({}, {}, { running: running.promise });
  const leaving = ask({
    host: "127.0.0.1",
    port: sender.server.port,
    path: "/graphql",
    method: "POST",
    rejectUnauthorized: false,
    headers: sender.headers(),
  }).on("error", () => {});
  leaving.end(body(sound));
  await until(() => sender.known.passed.length === 1);
  leaving.destroy();
  await until(() => sender.server.log.some(({ event }) => event === "http.request"));
  expect(sender.known.released).toEqual([]);
  running.reject(new Error("It failed."));
  await until(() => sender.known.released.length === 1);
  expect(sender.known.released).toEqual([["c0ffee"]]);
});

test.each([
  ["100 MB", 0, false],
  ["more than 100 MB", 1, true],
])("of a refused upload, %s are read before its connection ends", async (_name, more, isEnded) => {
  const request = Object.assign(new PassThrough(), {
    headers: { "content-type": "multipart/form-data", "graphql-preflight": "1" },
  });
  beginRequest(request as never, { claims: { userId: "u1" }, sentFiles: [] } as unknown as RequestState);
  const handle = uploads({ files: { release: async () => {} } } as never);
  await expect(
    Promise.resolve(handle(request as never, new PassThrough() as never, () => {})),
  ).rejects.toMatchObject({ message: "The multipart request has no boundary." });
  const piece = Buffer.alloc(multipartLimits.request / 10);
  for (let n = 0; n < 10; n += 1) request.emit("data", piece);
  if (more) request.emit("data", Buffer.alloc(more));
  expect(request.destroyed).toBe(isEnded);
  // A connection that breaks meanwhile is no further failure.
  expect(() => request.emit("error", new Error("reset"))).not.toThrow();
});

test.each([
  ["the field of its file, if it has arrived", true],
  ["the request, if it breaks off", false],
])("a failure to store a file concerns %s", async (_name, isComplete) => {
  const failure = new Error("The disk is full.");
  await using sender = await uploading({
    take: async (file) => {
      if (isComplete) await buffer(file);
      else file.destroy();
      throw failure;
    },
  });
  const answer = await sender.send(sound);
  const reasons = sender.known.passed.map(({ variables }) => variables.input.file.reason);
  expect([answer.status, reasons]).toEqual(isComplete ? [200, [failure]] : [500, []]);
  expect(sender.known.done).toBe(1);
});
