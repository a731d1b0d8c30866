import type { PoolClient } from "pg";
import { workContext } from "../base/workContext.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/**
 * Sets `plat.request_id` of a connection to the current request, so that events written by a job carry the id of the
 * originating request. Only sent when it changes; nothing is sent for work without a request.
 */
export function stampRequests(client: PoolClient): void {
  let stamped: string | undefined = "";
  const query = client.query.bind(client) as (...statement: DatabaseValue[]) => DatabaseValue;
  client.query = ((...statement: DatabaseValue[]) => {
    const wanted = workContext.getStore()?.requestId ?? "";
    // In a transaction it would be rolled back with it.
    if (wanted !== stamped && client.getTransactionStatus() === "I") {
      stamped = wanted;
      query("select pg_catalog.set_config('plat.request_id', $1, false)", [wanted]).catch(() => {
        stamped = undefined;
      });
    }
    return query(...statement);
  }) as PoolClient["query"];
}
