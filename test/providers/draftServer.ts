/** A server that implements the APIs of both draft providers, with configurable responses. */
import type { AddressInfo } from "node:net";
import express, { type Response } from "express";

/** The output of a model, before the protocol wraps it. */
export interface ModelAnswer {
  text?: string | null;
  stop?: "end" | "length" | "refusal";
}

export interface ReceivedRequest {
  protocol: "openai" | "anthropic";
  headers: Record<string, unknown>;
  body: any;
  /** The one JSON message of the user. */
  message: {
    task: any;
    facts: { key: string; statement: string }[];
    quotes: { from: string; text: string }[];
  };
}

export interface DraftServer {
  url: string;
  requests: ReceivedRequest[];
  /** Sets the output of the model from now on. */
  says(answer: (request: ReceivedRequest) => ModelAnswer | Promise<ModelAnswer>): void;
  /** Sets the raw response from now on, independent of the protocol. */
  answers(answer: (response: Response, request: ReceivedRequest) => unknown): void;
  close(): Promise<void>;
}

/** A draft as a model writes it. */
export const draft = (body: string, facts: string[] = [], subject = "Your home"): ModelAnswer => ({
  text: JSON.stringify({ subject, body, facts }),
});

const wrap = {
  openai: ({ text = "", stop = "end" }: ModelAnswer) => ({
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "test-model-1",
    choices: [
      {
        index: 0,
        finish_reason: stop === "length" ? "length" : "stop",
        message: {
          role: "assistant",
          content: stop === "refusal" ? null : text,
          refusal: stop === "refusal" ? "No." : null,
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  anthropic: ({ text = "", stop = "end" }: ModelAnswer) => ({
    id: "m1",
    type: "message",
    role: "assistant",
    model: "test-model-1",
    content: text === null ? [] : [{ type: "text", text }],
    stop_reason: { end: "end_turn", length: "max_tokens", refusal: "refusal" }[stop],
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
};

export async function startDraftServer(): Promise<DraftServer> {
  const requests: ReceivedRequest[] = [];
  const speak =
    (say: (request: ReceivedRequest) => ModelAnswer | Promise<ModelAnswer>) =>
    async (response: Response, one: ReceivedRequest) =>
      void response.json(wrap[one.protocol](await say(one)));
  let answer: (response: Response, request: ReceivedRequest) => unknown = speak(() => draft("Hello."));
  const app = express();
  app.use(express.json());
  for (const [protocol, path] of [
    ["openai", "/v1/chat/completions"],
    ["anthropic", "/v1/messages"],
  ] as const)
    app.post(path, (request, response) => {
      const { content } = request.body.messages.find((message: any) => message.role === "user");
      const one = { protocol, headers: request.headers, body: request.body, message: JSON.parse(content) };
      requests.push(one);
      void answer(response, one);
    });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    says: (say) => void (answer = speak(say)),
    answers: (next) => void (answer = next),
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}
