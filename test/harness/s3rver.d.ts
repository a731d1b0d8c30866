/** The part of the package that tests use; it has no types of its own. */
declare module "s3rver" {
  import type { EventEmitter } from "node:events";
  import type { ServerResponse } from "node:http";
  import type { AddressInfo } from "node:net";
  interface Context {
    method: string;
    query: Record<string, string>;
    type: string;
    body: string;
    status: number;
    path: string;
    /** Whether the body is sent as the answer; otherwise `res` is written by hand. */
    respond: boolean;
    res: ServerResponse;
  }
  export default class S3rver extends EventEmitter<{ event: [{ Records: { eventName: string }[] }] }> {
    constructor(options: {
      port: number;
      address: string;
      silent: boolean;
      directory: string;
      configureBuckets: { name: string; configs: string[] }[];
    });
    middleware: ((context: Context, next: () => Promise<void>) => Promise<void>)[];
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  }
}
