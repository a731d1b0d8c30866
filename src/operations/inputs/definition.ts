/**
 * Parts of a workflow definition that SQL cannot parse: templates, cron expressions, addresses. The service parses
 * them before the statement and passes the results by path; the database validates and refuses.
 */
import type { Compute } from "../../compute/computePool.ts";
import { CodedError } from "../../base/errors.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import {
  AddressRefused,
  AddressUnknown,
  resolvePublicAddress,
  type AddressPolicy,
} from "../../network/publicAddress.ts";
import type { TextChecks } from "../../compute/definitionTexts.ts";

type Checks = Record<string, TextChecks[string] | { fault: string } | { ok: true }>;

/** Implements the tag of app_public.workflow_checks. */
export function workflowChecks(policy: AddressPolicy, compute: Compute): ArgumentTransform {
  // Visitors must not cause work; SQL refuses them.
  return (_value, { input, context }) => {
    const { userId } = context.claims;
    return userId ? readDefinition(input, compute, { reader: userId, policy }) : {};
  };
}

/**
 * Parses a definition as given to createWorkflow, which may be malformed.
 * @param how reader: the viewer to whom the computation is accounted.
 * @throws CodedError LIMIT_EXCEEDED if its templates exceed the limit of parsing
 */
export async function readDefinition(
  input: { trigger?: unknown; steps?: unknown },
  compute: Compute,
  { reader, policy }: { reader: string; policy: AddressPolicy },
): Promise<Checks> {
  const steps = (Array.isArray(input.steps) ? input.steps : []).slice(0, 100);
  const configs = steps.map((step, index) => ({ config: step?.config, at: `steps[${index}].config` }));
  const [texts] = await compute.run(reader, "definition", null, [configs]);
  if ("over" in texts!) throw new CodedError("LIMIT_EXCEEDED", texts.over, { field: "steps" });
  const checks: Checks = texts!.value;
  const line = (input.trigger as { schedule?: unknown } | null | undefined)?.schedule;
  if (typeof line === "string") {
    const [fault] = await compute.run(reader, "scheduleFault", null, [line]);
    const message = "over" in fault! ? fault.over : fault!.value;
    checks["trigger.schedule"] = message === null ? { ok: true } : { fault: message };
  }
  for (const [index, { config, at }] of configs.entries()) {
    const url = steps[index]?.type === "CALL_WEBHOOK" ? (config as { url?: unknown } | null)?.url : undefined;
    if (typeof url === "string") checks[`${at}.url`] = await checkAddress(url, policy);
  }
  return checks;
}

async function checkAddress(url: string, policy: AddressPolicy): Promise<{ fault: string } | { ok: true }> {
  try {
    await resolvePublicAddress(url, policy);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof AddressRefused || error instanceof AddressUnknown)) throw error;
    return { fault: error.message };
  }
}
