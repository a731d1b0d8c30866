/** Declares the part of the package that tests use; it has no types. */
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
    /** Whether the body is sent as the response; otherwise, the handler writes to `res`. */
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
