/** The HTTP request of a CALL_WEBHOOK step. */
import type { Logger } from "../base/log.ts";
import { postPublicly } from "../network/publicPost.ts";
import { SealFault, type Seal } from "../secrets/seal.ts";
import { openSecrets } from "../webhooks/secrets.ts";
import { signedHeaders } from "../webhooks/signature.ts";

export interface Call {
  workflowId: string;
  organizationId: string;
  subjectType: string;
  subjectId: string;
  /** Constant across attempts. */
  messageId: string;
  /** Secrets of the organization's webhook for the same host, if there is one. */
  webhookId: string | null;
  sealed: string | null;
  previousSealed: string | null;
  leadId: string | null;
  /** The responsible user: who started the execution, otherwise the creator of the workflow. */
  requestedBy: string | null;
}

export interface CallOptions {
  executionId: string;
  seal: Seal;
  loopback: boolean;
  timeoutMs: number;
  log: Logger;
}

const answerLimit = 64 * 1024;

/** Sends the request and returns the response: parsed if it is JSON, otherwise as text. */
export async function callWebhook(
  input: Record<string, unknown>,
  call: Call,
  { executionId, seal, loopback, timeoutMs, log }: CallOptions,
): Promise<Record<string, unknown>> {
  const { messageId, webhookId, sealed, previousSealed, workflowId, organizationId, subjectType, subjectId } =
    call;
  const body = JSON.stringify({
    executionId,
    workflowId,
    organizationId,
    subjectType,
    subjectId,
    ...(input.body === undefined ? {} : { data: input.body }),
  });
  let secrets: string[];
  try {
    secrets = openSecrets(seal, webhookId, sealed, previousSealed);
  } catch (error) {
    if (error instanceof SealFault && error.reason === "PLACE")
      return { failure: "The webhook at this host has a secret that is not its own: rotate it." };
    log.error(
      { event: "secret.unreadable", err: error },
      "The secret of a webhook cannot be decrypted; check SECRET_KEYS.",
    );
    return { failure: "The service cannot open the secret." };
  }
  const headers = signedHeaders(messageId, body, secrets);
  if (secrets.length === 0) delete headers["webhook-signature"];
  const { answer, failure, durationMs } = await postPublicly(String(input.url), {
    headers: { "content-type": "application/json", "user-agent": "Plat-Workflows/1", ...headers },
    body,
    timeoutMs,
    answerLimit,
    textLimit: answerLimit,
    loopback,
  });
  return {
    messageId,
    status: answer?.status ?? null,
    body: answer ? read(answer.text) : null,
    durationMs,
    failure,
  };
}

/** PostgreSQL does not accept NUL, not even escaped in JSON. */
function read(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value).includes("\\u0000") ? text : value;
  } catch {
    return text;
  }
}
