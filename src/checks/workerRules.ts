import type { Rule } from "./rule.ts";

/** Background work may do no more than its tasks do, and only through functions. */
export const workerRules: Rule[] = [
  {
    name: "worker-table",
    why: "An injected statement in a task has the privileges of background work on all rows of all organizations.",
    query: `
      select distinct t.object, format('Revoke the grant from plat_worker, and write a definer function for the task; or write '
        '\`@worker …\` into the comment of %s with the reason why it contains no data of anybody.', t.object) as write
      from granted g join tables t on t.oid = g.table_oid
      where g.role = 'plat_worker' and coalesce(pg_temp.tag(t.comment, 'worker'), '') = ''`,
  },
  {
    name: "worker-function",
    why: "An unused privilege helps attackers who compromise a task.",
    query: `
      select f.object, format('Write \`revoke execute on function %s from plat_worker;\`: no code of background work calls it.', f.object) as write
      from functions f join pg_proc p on p.oid = f.oid
      where exists (select from aclexplode(p.proacl) a where a.grantee = 'plat_worker'::regrole)
        and not exists (select from worker_mentions m where m.callee = f.oid)`,
  },
];
