/** The part of the package that tests use; it has no types of its own. */
declare module "s3rver" {
  import type { EventEmitter } from "node:events";
  import type { AddressInfo } from "node:net";
  interface Context {
    method: string;
    query: Record<string, string>;
    type: string;
    body: string;
    status: number;
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
