/**
 * External systems in a separate process that can be killed: `node outside.ts store|mail|receiver <place> <port>`.
 * Everything it receives is written to its place, a folder or a file, before it is acknowledged. Port 0 is any free
 * port; it is printed on stdout.
 */
import { appendFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { callbackify } from "node:util";
import PostalMime from "postal-mime";
import { SMTPServer } from "smtp-server";
import { testCertificate } from "../harness/certificate.ts";
import { startS3 } from "../harness/s3.ts";

const [kind, place, given] = process.argv.slice(2) as ["store" | "mail" | "receiver", string, string];
const wanted = Number(given);
const keep = (line: object) => appendFileSync(place, `${JSON.stringify(line)}\n`);

const start = {
  async store() {
    const { options } = await startS3(place, wanted);
    return Number(new URL(options.endpoint!).port);
  },
  async mail() {
    const take = async (stream: Readable) => {
      const { messageId, text } = await PostalMime.parse(await buffer(stream));
      keep({ id: messageId, text });
    };
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["AUTH", "STARTTLS"],
      disableReverseLookup: true,
      onData: (stream, _session, done) => callbackify(take)(stream, done),
    });
    server.on("error", () => {});
    await new Promise<void>((listening) => server.listen(wanted, "127.0.0.1", listening));
    return (server.server.address() as AddressInfo).port;
  },
  async receiver() {
    const server = createServer(await testCertificate(), async (request, response) => {
      const { subjectId } = JSON.parse((await buffer(request)).toString());
      keep({ id: request.headers["webhook-id"], subjectId });
      response.writeHead(204).end();
    });
    await new Promise<void>((listening) => server.listen(wanted, "127.0.0.1", listening));
    return (server.address() as AddressInfo).port;
  },
};
process.stdout.write(`${await start[kind]()}\n`);
