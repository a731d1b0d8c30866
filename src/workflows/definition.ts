/**
 * What of a definition SQL cannot read: templates, the cron line, addresses. The service reads them before the statement and
 * hands over what it found, by the path of each; the database decides what of it has to be there, and refuses the rest.
 */
import type { ArgumentTransform } from "../operations/members.ts";
import {
  AddressRefused,
  AddressUnknown,
  resolvePublicAddress,
  type AddressPolicy,
} from "../outbound/publicAddress.ts";
import { scheduleFault } from "./schedule.ts";
import { checkTemplate, isTemplate, type TemplateCheck } from "./templates.ts";

type Checks = Record<string, TemplateCheck | { fault: string } | { ok: true }>;

/** More than any definition has; whoever sends more is refused by the database for its size. */
const most = 2000;

/** The implementation of the tag of app_public.workflow_checks. */
export function workflowChecks(policy: AddressPolicy): ArgumentTransform {
  // Nobody without a token makes the service read anything; SQL refuses them.
  return (_value, { input, context }) => (context.claims.userId ? readDefinition(input, policy) : {});
}

/** Reads a definition as createWorkflow takes it, whatever is in it. */
export async function readDefinition(
  input: { trigger?: unknown; steps?: unknown },
  policy: AddressPolicy = { loopback: false },
): Promise<Checks> {
  const checks: Checks = {};
  const line = (input.trigger as { schedule?: unknown } | null | undefined)?.schedule;
  if (typeof line === "string") {
    const fault = scheduleFault(line);
    checks["trigger.schedule"] = fault ? { fault } : { ok: true };
  }
  const steps = Array.isArray(input.steps) ? input.steps : [];
  for (const [index, step] of steps.slice(0, 100).entries()) {
    const at = `steps[${index}].config`;
    readTemplates(step?.config, at, checks);
    const url = step?.type === "CALL_WEBHOOK" ? step.config?.url : undefined;
    if (typeof url === "string") checks[`${at}.url`] = await checkAddress(url, policy);
  }
  return checks;
}

/** Reads every text in a JSON value that could be a template. */
function readTemplates(value: unknown, at: string, checks: Checks, depth = 0): void {
  if (depth > 12 || Object.keys(checks).length > most) return;
  if (typeof value === "string") {
    if (isTemplate(value)) checks[at] = checkTemplate(value);
  } else if (Array.isArray(value)) {
    value.forEach((element, index) => readTemplates(element, `${at}[${index}]`, checks, depth + 1));
  } else if (typeof value === "object" && value !== null) {
    for (const [key, member] of Object.entries(value))
      readTemplates(member, `${at}.${key.slice(0, 50)}`, checks, depth + 1);
  }
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
