/**
 * Keep-alive connections to user-provided addresses. Each is bound to the addresses that were checked when it was opened: a request whose
 * name now resolves differently gets another connection, or none if the new addresses are not allowed.
 */
import { Agent, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import type { CheckedAddress } from "./publicAddress.ts";

declare module "node:https" {
  interface RequestOptions {
    /** The checked addresses; set by requestPublicly. */
    checkedAddresses?: readonly CheckedAddress[];
  }
}

/** Idle milliseconds after which a connection is closed: less than servers usually wait. */
const IDLE_MS = 4_000;
/** Maximum idle connections to one receiver. */
const IDLE_EACH = 256;
/** Maximum connections to all receivers; above it, none is kept alive. */
const MOST = 512;

/** Keeps connections separate by their checked addresses; must be destroyed after use. */
export class PublicAgent extends Agent {
  constructor() {
    super({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_EACH });
  }

  override getName(options: RequestOptions = {}): string {
    const addresses = (options.checkedAddresses ?? []).map(({ address }) => address).toSorted();
    return `${super.getName(options)}:${addresses.join(",")}`;
  }

  // NOTE: It returns whether the connection is kept, which its type does not declare.
  override keepSocketAlive(socket: Duplex): boolean {
    const { totalSocketCount } = this as unknown as { totalSocketCount: number };
    return totalSocketCount <= MOST && (super.keepSocketAlive(socket) as unknown as boolean);
  }
}
