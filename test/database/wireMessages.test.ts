/** The protocol messages of a batch (src/database/wireMessages.ts), parsed as the server parses them. */
import { expect, test } from "@jest/globals";
import { WireMessages } from "../../src/database/wireMessages.ts";

/** Type and contents of each message. */
function messagesOf(bytes: Buffer): [type: string, body: Buffer][] {
  const found: [string, Buffer][] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    found.push([bytes.toString("latin1", at, at + 1), bytes.subarray(at + 5, end)]);
    at = end;
  }
  return found;
}

/** The contents of a Bind message. */
function bound(body: Buffer) {
  let at = 0;
  const text = () => {
    const end = body.indexOf(0, at);
    const found = body.toString("utf8", at, end);
    at = end + 1;
    return found;
  };
  const int16 = () => body.readInt16BE((at += 2) - 2);
  const list = <T>(read: () => T): T[] => Array.from({ length: int16() }, read);
  const [portal, statement] = [text(), text()];
  const formats = list(int16);
  const values = list(() => {
    const length = body.readInt32BE((at += 4) - 4);
    return length < 0 ? null : body.toString("latin1", at, (at += length));
  });
  const columns = list(int16);
  expect(at).toBe(body.length);
  return { portal, statement, formats, values, columns };
}

test("a batch is one buffer, in the order of its messages", () => {
  const messages = new WireMessages();
  messages.close("old");
  messages.parse("new", "select 'ö'");
  messages.bind("new", []);
  messages.describe();
  messages.execute();
  messages.sync();
  expect(messagesOf(messages.take()).map(([type, body]) => [type, body.toString("utf8")])).toEqual([
    ["C", "Sold\0"],
    ["P", "new\0select 'ö'\0\0\0"],
    ["B", "\0new\0\0\0\0\0\0\0"],
    ["D", "P\0"],
    ["E", "\0\0\0\0\0"],
    ["S", ""],
  ]);
  expect(messages.take()).toHaveLength(0);
});

/** Bytes as a string, which is compared faster. */
const latin1 = (value: string | Buffer) => Buffer.from(value as string).toString("latin1");

test("values arrive unchanged: texts of any length and script, bytes, and null", () => {
  const messages = new WireMessages(8);
  const texts = ["", "a", "ö北🏠", "北".repeat(999), "🏠".repeat(70_000), "a".repeat(1_001)];
  messages.bind("s", [...texts, null, undefined]);
  const [[, first]] = messagesOf(messages.take()) as [[string, Buffer]];
  expect(bound(first)).toEqual({
    portal: "",
    statement: "s",
    formats: [],
    values: [...texts.map(latin1), null, null],
    columns: [],
  });
  const bytes = Buffer.from([0, 255, 10]);
  messages.bind("", ["a", bytes, null]);
  const [[, second]] = messagesOf(messages.take()) as [[string, Buffer]];
  expect(bound(second)).toMatchObject({ formats: [0, 1, 0], values: ["a", latin1(bytes), null] });
});

test("values that could not be encoded are not sent with the next batch", () => {
  const messages = new WireMessages();
  messages.execute();
  messages.clear();
  messages.sync();
  expect(messages.take()).toEqual(Buffer.from("S\0\0\0\x04"));
});
