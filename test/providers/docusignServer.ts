/**
 * A server that implements the eSignature REST API of DocuSign over HTTPS: authenticates applications by JSON Web
 * Token, stores envelopes, updates them when signers act, and sends signed notifications.
 */
import { createHmac, generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer, request as send } from "node:https";
import type { AddressInfo } from "node:net";
import express, { type Request, type Response } from "express";
import jwt from "jsonwebtoken";
import { testCertificate } from "../harness/certificate.ts";

/** Handles a request; `goOn` applies the default handling. */
type Answering = (request: Request, response: Response, goOn: () => void) => void;

export interface HeldEnvelope {
  envelopeId: string;
  transactionId: string;
  status: string;
  voidedReason?: string;
  /** As received. */
  definition: any;
  document: Buffer;
  signers: any[];
  /** Number of reminders to its signers. */
  resent: number;
}

export interface DocusignServer {
  url: string;
  /** Config and credentials of an integration with the account. */
  config: { server: string; accountId: string };
  credentials: { integrationKey: string; userId: string; privateKey: string; webhookKey: string };
  envelopes: HeldEnvelope[];
  /** Methods and paths of received requests, oldest first. */
  requests: string[];
  /** Replaces the handling of matching requests from now on. */
  answers(match: RegExp, answer: Answering | null): void;
  /** Acts as a signer. */
  act(
    envelope: HeldEnvelope,
    email: string,
    what: "delivered" | "completed" | "declined",
    reason?: string,
  ): void;
  /** Sends a notification to the service, as configured by `eventNotification`. */
  notify(envelope: HeldEnvelope, to: string, key?: string): Promise<number>;
  close(): Promise<void>;
}

export const signedPdf = Buffer.from("%PDF-1.7\n% signed there\n%%EOF\n");
export const certificatePdf = Buffer.from("%PDF-1.7\n% certificate of there\n%%EOF\n");

export async function startDocusignServer(): Promise<DocusignServer> {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const credentials = {
    integrationKey: randomUUID(),
    userId: randomUUID(),
    privateKey,
    webhookKey: "a key for notices",
  };
  const accountId = randomUUID();
  const envelopes: HeldEnvelope[] = [];
  const requests: string[] = [];
  const special: { match: RegExp; answer: Answering }[] = [];
  const tokens = new Set<string>();
  const app = express();
  let url = "";

  app.use((request, response, next) => {
    const line = `${request.method} ${request.originalUrl}`;
    requests.push(line);
    const found = special.find(({ match }) => match.test(line));
    if (found) found.answer(request, response, next);
    else next();
  });
  app.post("/oauth/token", express.urlencoded({ extended: false }), (request, response) => {
    try {
      const claims = jwt.verify(request.body.assertion, publicKey, {
        algorithms: ["RS256"],
        issuer: credentials.integrationKey,
        subject: credentials.userId,
        audience: new URL(url).host,
      }) as jwt.JwtPayload;
      if (claims["scope"] !== "signature impersonation") throw new Error("scope");
    } catch {
      return void response.status(400).json({ error: "invalid_grant", error_description: "no_valid_keys" });
    }
    const token = randomUUID();
    tokens.add(token);
    response.json({ access_token: token, token_type: "Bearer", expires_in: 3600 });
  });
  app.use((request, response, next) => {
    const token = /^Bearer (.+)$/.exec(request.get("authorization") ?? "")?.[1];
    if (token !== undefined && tokens.has(token)) next();
    else response.status(401).json({ errorCode: "USER_AUTHENTICATION_FAILED", message: "private" });
  });
  app.get("/oauth/userinfo", (_request, response) => {
    response.json({
      sub: credentials.userId,
      accounts: [
        { account_id: accountId, account_name: "Harbour at DocuSign", is_default: true, base_uri: url },
      ],
    });
  });
  const root = `/restapi/v2.1/accounts/${accountId}`;
  app.get(`${root}/envelopes`, (request, response) => {
    const wanted = String(request.query["transaction_ids"]).split(",");
    response.json({
      envelopes: envelopes.filter(({ transactionId }) => wanted.includes(transactionId)).map(facts),
    });
  });
  app.post(
    `${root}/envelopes`,
    express.raw({ type: "multipart/form-data", limit: "60mb" }),
    (request, response) => {
      const [, boundary] = /boundary=(.+)$/.exec(request.get("content-type") ?? "")!;
      const parts = split(request.body as Buffer, `--${boundary}`);
      const definition = JSON.parse(parts[0]!.body.toString());
      const file = parts[1]!;
      if (!/^content-disposition: file; filename="[^"]+"; ?documentid=1$/im.test(file.head))
        return void response.status(400).json({ errorCode: "DOCUMENT_MISSING", message: "private" });
      const envelope: HeldEnvelope = {
        envelopeId: randomUUID(),
        transactionId: definition.transactionId,
        status: definition.status,
        definition,
        document: file.body,
        resent: 0,
        signers: definition.recipients.signers.map((signer: any) => ({ ...signer, status: "created" })),
      };
      envelopes.push(envelope);
      askNext(envelope);
      response.status(201).json(facts(envelope));
    },
  );
  const find = (request: Request) => envelopes.find(({ envelopeId }) => envelopeId === request.params["id"])!;
  app.get(`${root}/envelopes/:id`, (request, response) => {
    const envelope = find(request);
    response.json({ ...facts(envelope), recipients: { signers: envelope.signers } });
  });
  app.put(`${root}/envelopes/:id`, express.json(), (request, response) => {
    const envelope = find(request);
    if (request.query["resend_envelope"] === "true") envelope.resent += 1;
    else if (!["sent", "delivered"].includes(envelope.status))
      return void response
        .status(400)
        .json({ errorCode: "ENVELOPE_CANNOT_VOID_INVALID_STATE", message: "private" });
    else Object.assign(envelope, request.body);
    response.json({ envelopeId: envelope.envelopeId });
  });
  app.get(`${root}/envelopes/:id/documents/:name`, (request, response) => {
    response
      .type("application/pdf")
      .send(request.params["name"] === "certificate" ? certificatePdf : signedPdf);
  });

  const facts = ({ envelopeId, transactionId, status, voidedReason }: HeldEnvelope) => ({
    envelopeId,
    transactionId,
    status,
    voidedReason,
  });
  /** Sends the envelope to the next signers. */
  function askNext(envelope: HeldEnvelope): void {
    const open = envelope.signers.filter(({ status }) => status !== "completed");
    const order = Math.min(...open.map(({ routingOrder }) => Number(routingOrder)));
    for (const signer of open)
      if (Number(signer.routingOrder) === order && signer.status === "created") signer.status = "sent";
    if (open.length === 0) envelope.status = "completed";
  }

  const { cert, key } = await testCertificate();
  const server = createServer({ cert, key }, app);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `https://localhost:${(server.address() as AddressInfo).port}`;
  return {
    url,
    config: { server: url, accountId },
    credentials,
    envelopes,
    requests,
    answers(match, answer) {
      const at = special.findIndex((one) => one.match.source === match.source);
      if (at >= 0) special.splice(at, 1);
      if (answer) special.push({ match, answer });
    },
    act(envelope, email, what, reason) {
      const signer = envelope.signers.find((one) => one.email === email);
      const time = {
        delivered: "deliveredDateTime",
        completed: "signedDateTime",
        declined: "declinedDateTime",
      }[what];
      Object.assign(signer, { status: what, [time]: new Date().toISOString(), declinedReason: reason });
      if (what === "delivered") envelope.status = "delivered";
      if (what === "declined") envelope.status = "declined";
      if (what === "completed") askNext(envelope);
    },
    notify(envelope, to, secret = credentials.webhookKey) {
      const body = JSON.stringify({ event: "envelope-changed", data: { envelopeId: envelope.envelopeId } });
      return new Promise((done, fail) => {
        send(
          to,
          {
            method: "POST",
            rejectUnauthorized: false,
            agent: false,
            headers: {
              "content-type": "application/json",
              "x-docusign-signature-1": createHmac("sha256", secret).update(body).digest("base64"),
            },
          },
          (response) => {
            response.resume();
            response.on("end", () => done(response.statusCode!));
          },
        )
          .on("error", fail)
          .end(body);
      });
    },
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

/** The parts of a multipart body. */
function split(body: Buffer, delimiter: string): { head: string; body: Buffer }[] {
  const parts: { head: string; body: Buffer }[] = [];
  let at = body.indexOf(delimiter);
  while (at >= 0) {
    const end = body.indexOf(delimiter, at + delimiter.length);
    if (end < 0) break;
    const part = body.subarray(at + delimiter.length + 2, end - 2);
    const blank = part.indexOf("\r\n\r\n");
    parts.push({ head: part.subarray(0, blank).toString(), body: part.subarray(blank + 4) });
    at = end;
  }
  return parts;
}
