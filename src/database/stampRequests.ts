import type { PoolClient } from "pg";
import { workContext } from "../base/workContext.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/**
 * Has a connection say in `plat.request_id` for which request its statements are, so that the events of a job bear the id of the request
 * that has led to it. Told only where that changes: nothing is sent for what nobody has asked for.
 */
export function stampRequests(client: PoolClient): void {
  let stamped: string | undefined = "";
  const query = client.query.bind(client) as (...statement: DatabaseValue[]) => DatabaseValue;
  client.query = ((...statement: DatabaseValue[]) => {
    const wanted = workContext.getStore()?.requestId ?? "";
    // In a transaction it would be undone with it.
    if (wanted !== stamped && client.getTransactionStatus() === "I") {
      stamped = wanted;
      query("select pg_catalog.set_config('plat.request_id', $1, false)", [wanted]).catch(() => {
        stamped = undefined;
      });
    }
    return query(...statement);
  }) as PoolClient["query"];
}
