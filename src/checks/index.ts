import { commentRules } from "./commentRules.ts";
import { functionRules } from "./functionRules.ts";
import { grantRules } from "./grantRules.ts";
import { keyRules } from "./keyRules.ts";
import { maskRules } from "./maskRules.ts";
import { nameRules } from "./nameRules.ts";
import { personalRules } from "./personalRules.ts";
import { policyRules } from "./policyRules.ts";
import { principalRules } from "./principalRules.ts";
import type { Rule } from "./rule.ts";
import { tableRules } from "./tableRules.ts";
import { workerRules } from "./workerRules.ts";

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
