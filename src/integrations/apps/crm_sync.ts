/** Sends events to another system in its own fields: a webhook of the integration, with a mapping applied to its body. */
import { AddressRefused, AddressUnknown, resolvePublicAddress } from "../../network/publicAddress.ts";
import { postPublicly } from "../../network/publicPost.ts";
import { freshSecret, signedHeaders } from "../../webhooks/signature.ts";
import { ConnectionFailed, Misconfigured, type Adapter } from "../adapter.ts";
import type { Mapping } from "../../compute/mapping.ts";

const adapter: Adapter = {
  async check({ url, events, mapping }, { policy, unknownEvent, compute, tenant }) {
    try {
      await resolvePublicAddress(url as string, policy);
    } catch (error) {
      if (!(error instanceof AddressRefused || error instanceof AddressUnknown)) throw error;
      throw new Misconfigured("config.url", error.message);
    }
    const unknown = await unknownEvent(events as string[]);
    if (unknown !== undefined)
      throw new Misconfigured(
        "config.events",
        `There is no event ${unknown}; use events such as lead.created, unit.* or *.`,
      );
    const [checked] = await compute.run(tenant, "mappingFault", null, [mapping as Mapping]);
    if ("over" in checked!) throw new Misconfigured("config.mapping", checked.over);
    if (checked!.value) throw new Misconfigured(checked!.value.at, checked!.value.message);
  },
  async connect({ id, config, credentials }, { policy, sealWebhookSecret, compute, tenant }) {
    const { url, events, mapping } = config as {
      url: string;
      events: string[];
      mapping: Mapping;
    };
    const secret = (credentials?.["secret"] as string | undefined) ?? freshSecret();
    const event = { id, type: "integration.test", timestamp: new Date().toISOString(), data: {} };
    const [result] = await compute.run(tenant, "mapping", mapping, [event]);
    if ("over" in result!) throw new ConnectionFailed(result.over, { retryable: false });
    const body = JSON.stringify(result!.value);
    const { answer, failure } = await postPublicly(url, {
      ...policy,
      headers: {
        "content-type": "application/json",
        "user-agent": "Plat-Webhooks/1",
        "plat-event": "integration.test",
        ...signedHeaders(id, body, [secret]),
      },
      body,
      timeoutMs: 10_000,
      answerLimit: 64 * 1024,
    });
    if (!answer || answer.status < 200 || answer.status > 299)
      throw new ConnectionFailed(
        answer ? `The receiver answered the test event with ${answer.status}.` : failure!,
        { retryable: !answer || answer.status >= 500 || answer.status === 429 },
      );
    return {
      credentials: { secret },
      externalAccount: new URL(url).host,
      // It is only returned once; a user who has lost it creates a new integration.
      ...(credentials ? {} : { shown: { secret } }),
      extra: {
        url,
        events,
        mapping,
        sealedSecret: sealWebhookSecret(secret),
        secretPrefix: secret.slice(0, 12),
      },
    };
  },
};

export default adapter;
