/**
 * A checker for histories of append-only lists, after the method of Kingsbury and Alvaro ("Elle: Inferring Isolation
 * Anomalies from Experimental Observations", 2020). As each value is appended once, the lists that were read
 * determine the order of transactions. A cycle among the transactions, including the order observed by their clients,
 * is an anomaly.
 */

/** A request that appended to or read lists, atomically if the service is correct. */
export interface Transaction {
  /** When it was sent and answered, in any unit that all transactions share. */
  readonly sentAt: number;
  readonly answeredAt: number;
  /** The appended values, by list. */
  readonly appended: ReadonlyMap<string, string>;
  /** The read values, by list. */
  readonly read: ReadonlyMap<string, readonly string[]>;
}

/** Why a transaction precedes another one. */
type Why =
  | "wrote what the other one read"
  | "wrote before"
  | "read before it was written"
  | "was answered before the other one was sent";

class Graph {
  readonly #next = new Map<number, Map<number, Why>>();

  add(from: number, to: number, why: Why): void {
    if (from === to) return;
    const targets = this.#next.get(from) ?? new Map<number, Why>();
    this.#next.set(from, targets);
    if (!targets.has(to)) targets.set(to, why);
  }

  /** The shortest cycle through a transaction; undefined if there is none. */
  cycleOf(start: number): { from: number; why: Why }[] | undefined {
    const cameFrom = new Map<number, number>();
    const queue = [start];
    for (const at of queue)
      for (const to of this.#next.get(at)?.keys() ?? []) {
        if (to === start) {
          const path = [at];
          while (path[0] !== start) path.unshift(cameFrom.get(path[0]!)!);
          return path.map((from, index) => ({
            from,
            why: this.#next.get(from)!.get(path[index + 1] ?? start)!,
          }));
        }
        if (cameFrom.has(to)) continue;
        cameFrom.set(to, at);
        queue.push(to);
      }
    return undefined;
  }

  /**
   * Transactions in cycles, by Kahn's algorithm: those that remain when transactions without a predecessor
   * are removed repeatedly.
   */
  inCycles(count: number): number[] {
    const before = Array.from({ length: count }, () => 0);
    for (const targets of this.#next.values()) for (const to of targets.keys()) before[to]! += 1;
    const free = before.flatMap((number, index) => (number === 0 ? [index] : []));
    const left = new Set(before.keys());
    for (const at of free) {
      left.delete(at);
      for (const to of this.#next.get(at)?.keys() ?? []) if (--before[to]! === 0) free.push(to);
    }
    return [...left];
  }
}

/**
 * The anomalies of a history.
 * @param history transactions that were answered without errors, including a final read of all lists.
 * @param realTime whether a transaction that was sent after the response to another one must follow it, for
 * all clients, as with a single server.
 * @returns a sentence for each anomaly.
 */
export function anomalies(history: readonly Transaction[], { realTime = true } = {}): string[] {
  const faults: string[] = [];
  const { orders, writers } = readOrders(history, faults);
  if (faults.length > 0) return faults;
  const graph = new Graph();
  for (const [index, { appended, read }] of history.entries()) {
    for (const [list, value] of appended) {
      const order = orders.get(list)!;
      const place = order.indexOf(value);
      if (place < 0) faults.push(`${list} has lost ${value}.`);
      else if (place > 0) graph.add(writers.get(order[place - 1]!)!, index, "wrote before");
    }
    for (const [list, values] of read) {
      const last = values.at(-1);
      if (last !== undefined) graph.add(writers.get(last)!, index, "wrote what the other one read");
      const following = orders.get(list)![values.length];
      if (following !== undefined) graph.add(index, writers.get(following)!, "read before it was written");
    }
  }
  if (realTime) addRealTime(history, graph);
  const [first] = graph.inCycles(history.length).flatMap((index) => graph.cycleOf(index) ?? []);
  const cycle = first && graph.cycleOf(first.from);
  if (cycle)
    faults.push(`A cycle: ${cycle.map(({ from, why }) => `${textOf(history[from]!)} ${why}`).join(", ")}.`);
  return faults;
}

/**
 * The longest read of each list, of which all other reads must be a prefix; and the transaction that appended
 * each value.
 */
function readOrders(history: readonly Transaction[], faults: string[]) {
  const orders = new Map<string, readonly string[]>();
  const writers = new Map<string, number>();
  for (const [index, { appended, read }] of history.entries()) {
    for (const [list, value] of appended) {
      // Values are distinct over all lists and transactions.
      writers.set(value, index);
      if (!orders.has(list)) orders.set(list, []);
    }
    for (const [list, values] of read)
      if (values.length >= (orders.get(list)?.length ?? 0)) orders.set(list, values);
  }
  for (const { read } of history)
    for (const [list, values] of read) {
      const order = orders.get(list)!;
      if (values.some((value, place) => value !== order[place]))
        faults.push(`${list} was read as ${values.join(" ")} and as ${order.join(" ")}.`);
    }
  for (const [list, order] of orders) {
    if (new Set(order).size < order.length) faults.push(`${list} has a value twice: ${order.join(" ")}.`);
    for (const value of order)
      if (!writers.has(value)) faults.push(`${list} has ${value}, which nobody was told to have appended.`);
  }
  return { orders, writers };
}

/**
 * Adds the order in real time: edges from the transactions that were answered before a transaction was sent,
 * except for those that another one of these follows.
 */
function addRealTime(history: readonly Transaction[], graph: Graph): void {
  const answered = [...history.entries()].toSorted(([, a], [, b]) => a.answeredAt - b.answeredAt);
  for (const [index, { sentAt }] of history.entries()) {
    let lastSent = -Infinity;
    for (let place = answered.length - 1; place >= 0; place -= 1) {
      const [before, { sentAt: beforeSent, answeredAt }] = answered[place]!;
      if (answeredAt >= sentAt) continue;
      if (answeredAt < lastSent) break;
      graph.add(before, index, "was answered before the other one was sent");
      lastSent = Math.max(lastSent, beforeSent);
    }
  }
}

const textOf = ({ appended, read }: Transaction): string =>
  appended.size > 0
    ? `what appended ${[...appended].map(([list, value]) => `${value} to ${list}`).join(", ")}`
    : `what read ${[...read].map(([list, values]) => `${values.at(-1) ?? "nothing"} in ${list}`).join(", ")}`;
