import { commentRules } from "./comments.ts";
import { functionRules } from "./functions.ts";
import { grantRules } from "./grants.ts";
import { keyRules } from "./keys.ts";
import { maskRules } from "./masks.ts";
import { nameRules } from "./names.ts";
import { personalRules } from "./personal.ts";
import { policyRules } from "./policies.ts";
import { principalRules } from "./principals.ts";
import type { Rule } from "./rule.ts";
import { tableRules } from "./tables.ts";
import { workerRules } from "./worker.ts";

/** All rules for the catalog, in the order in which their findings should be fixed. */
export const rules: readonly Rule[] = [
  ...tableRules,
  ...keyRules,
  ...grantRules,
  ...workerRules,
  ...policyRules,
  ...principalRules,
  ...functionRules,
  ...commentRules,
  ...maskRules,
  ...personalRules,
  ...nameRules,
];
