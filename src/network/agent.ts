/**
 * Connections to addresses that users gave, kept for the next request. Each belongs to the addresses that were checked when it was made:
 * a request whose name leads elsewhere by now gets another connection, and none at all where that is not allowed any more.
 */
import { Agent, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import type { CheckedAddress } from "./publicAddress.ts";

declare module "node:https" {
  interface RequestOptions {
    /** What the connection may lead to; set by requestPublicly. */
    checkedAddresses?: readonly CheckedAddress[];
  }
}

/** Milliseconds that a connection waits for its next request: less than servers usually wait before they close it. */
const IDLE_MS = 4_000;
/** Idle connections that are kept to one receiver. */
const IDLE_EACH = 256;
/** Connections to all receivers beyond which none is kept. */
const MOST = 512;

/** Keeps connections apart by what was checked for them; to be destroyed when it is not needed any more. */
export class PublicAgent extends Agent {
  constructor() {
    super({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_EACH });
  }

  override getName(options: RequestOptions = {}): string {
    const addresses = (options.checkedAddresses ?? []).map(({ address }) => address).toSorted();
    return `${super.getName(options)}:${addresses.join(",")}`;
  }

  // NOTE: It answers whether the connection is kept, which its type does not say.
  override keepSocketAlive(socket: Duplex): boolean {
    const { totalSocketCount } = this as unknown as { totalSocketCount: number };
    return totalSocketCount <= MOST && (super.keepSocketAlive(socket) as unknown as boolean);
  }
}
