import { isolateIds } from "./batchedLookups.ts";
import { withUsedColumns } from "./usedColumns.ts";

/** A statement as it is sent: what the stack writes, changed where PostgreSQL would otherwise do needless work. */
export const rewriteStatement = (text: string): string => withUsedColumns(isolateIds(text));
