/** The keys of restricted lists, which are null without the permission (see PermissionsPlugin). */
import type { ExecutableStep } from "postgraphile/grafast";

const keys = new WeakMap<object, ExecutableStep>();

export function restrict($list: object, $key: ExecutableStep): void {
  keys.set($list, $key);
}

/** The key of a list; undefined if everybody who sees the record gets the list. */
export const permissionKey = ($list: object): ExecutableStep | undefined => keys.get($list);
