/** Thrown by a gate that has no room for another job of that network, or whose job waited too long. */
export class GateFull extends Error {
  /** When another try has a chance. */
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super("Too many are waiting already.");
    this.name = "GateFull";
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface GateOptions {
  /** Jobs that run at once, of all shares together. */
  readonly atOnce: number;
  /** Jobs of one share that wait; beyond it, the longest queue gives its last place to a network that waits for less. */
  readonly waitingAtMost: number;
  /** Jobs of one network that wait in a share. */
  readonly waitingPerNetwork: number;
  /** How long a job may wait, in milliseconds. */
  readonly waitMs: number;
}

interface Waiting {
  start(): void;
  refuse(): void;
}

/** The queues of one share, by network. The order of the map is the order of turns. */
type Share = Map<string, Waiting[]>;

/**
 * Lets a bounded number of jobs run at once. The shares take turns, and within a share the networks do: whoever sends many
 * waits for themselves, neither the other networks nor the other shares wait for them.
 * @returns a function that runs a job of a share (such as "sign-in") and a network when its turn comes; it throws GateFull
 * where there is no room to wait, or the wait took too long. The job was not begun then.
 */
export function createGate({ atOnce, waitingAtMost, waitingPerNetwork, waitMs }: GateOptions) {
  const shares = new Map<string, Share>();
  let running = 0;
  const refusal = () => new GateFull(Math.ceil(waitMs / 1000));

  /** Takes out whose turn it is: of the share, and of its network, that was served longest ago. */
  function next(): Waiting | undefined {
    for (const [share, networks] of shares) {
      for (const [network, queue] of networks) {
        const waiting = queue.shift()!;
        networks.delete(network);
        if (queue.length > 0) networks.set(network, queue);
        shares.delete(share);
        if (networks.size > 0) shares.set(share, networks);
        return waiting;
      }
    }
    return undefined;
  }

  function leave(share: string, network: string, waiting: Waiting): void {
    const networks = shares.get(share);
    const queue = networks?.get(network);
    const at = queue?.indexOf(waiting) ?? -1;
    if (!networks || !queue || at < 0) return;
    queue.splice(at, 1);
    if (queue.length === 0) networks.delete(network);
    if (networks.size === 0) shares.delete(share);
  }

  /** Whether the share is full for this network; makes room at the cost of one that has more waiting. */
  function isFull(networks: Share | undefined, network: string): boolean {
    if (!networks) return false;
    const own = networks.get(network)?.length ?? 0;
    if (own >= waitingPerNetwork) return true;
    const queues = [...networks.values()];
    if (queues.reduce((sum, queue) => sum + queue.length, 0) < waitingAtMost) return false;
    const longest = queues.reduce((a, b) => (b.length > a.length ? b : a));
    if (longest.length <= own + 1) return true;
    longest.at(-1)!.refuse();
    return false;
  }

  function turn(share: string, network: string): Promise<void> {
    if (isFull(shares.get(share), network)) throw refusal();
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => () => {
        clearTimeout(timer);
        leave(share, network, waiting);
        settle();
      };
      const waiting: Waiting = { start: end(resolve), refuse: end(() => reject(refusal())) };
      const timer = setTimeout(waiting.refuse, waitMs);
      const networks = shares.get(share) ?? new Map<string, Waiting[]>();
      shares.set(share, networks);
      const queue = networks.get(network) ?? [];
      networks.set(network, queue);
      queue.push(waiting);
    });
  }

  return async <T>(share: string, network: string, job: () => Promise<T>): Promise<T> => {
    // Whoever finishes hands its place over, so nobody can slip in between.
    if (running >= atOnce) await turn(share, network);
    else running++;
    try {
      return await job();
    } finally {
      const waiting = next();
      if (waiting) waiting.start();
      else running--;
    }
  };
}
