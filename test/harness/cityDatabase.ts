import { writeFile } from "node:fs/promises";
import { isIPv4 } from "node:net";

type Value = number | string | bigint | readonly Value[] | { readonly [key: string]: Value };

/** A node of the search tree, with a child or record for each bit. */
type Node = [Node | Buffer | null, Node | Buffer | null];

function control(type: number, size: number): Buffer {
  if (size > 28) throw new Error("Longer values are not needed here.");
  return type < 8 ? Buffer.from([(type << 5) | size]) : Buffer.from([size, type - 7]);
}

function encode(value: Value): Buffer {
  if (typeof value === "string")
    return Buffer.concat([control(2, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === "number") {
    const double = Buffer.alloc(8);
    double.writeDoubleBE(value);
    return Buffer.concat([control(3, 8), double]);
  }
  if (typeof value === "bigint") {
    const whole = Buffer.alloc(4);
    whole.writeUInt32BE(Number(value));
    return Buffer.concat([control(6, 4), whole]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(11, value.length), ...value.map(encode)]);
  const entries = Object.entries(value);
  return Buffer.concat([control(7, entries.length), ...entries.flat().map((part) => encode(part as Value))]);
}

/** The bits of an IPv6 address; an IPv4 address is in `::/96`, as the format defines. */
function bitsOf(ip: string): number[] {
  const words = isIPv4(ip)
    ? [
        0,
        0,
        0,
        0,
        0,
        0,
        Buffer.from(ip.split(".").map(Number)).readUInt16BE(0),
        Buffer.from(ip.split(".").map(Number)).readUInt16BE(2),
      ]
    : expand(ip);
  return words.flatMap((word) => Array.from({ length: 16 }, (_, n) => (word >> (15 - n)) & 1));
}

function expand(ip: string): number[] {
  const [head = "", tail = ""] = ip.split("::");
  const words = (text: string) =>
    text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
  const [left, right] = [words(head), words(tail)];
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/**
 * Writes a database in MaxMind's format, version 2.0, with the given networks.
 * @param networks records by network, such as `128.100.0.0/16`.
 */
export async function writeCityDatabase(path: string, networks: Record<string, Value>): Promise<void> {
  const root: Node = [null, null];
  for (const [network, record] of Object.entries(networks)) {
    const [ip = "", length = "0"] = network.split("/");
    const bits = bitsOf(ip).slice(0, Number(length) + (isIPv4(ip) ? 96 : 0));
    const last = bits.pop() ?? 0;
    let node = root;
    for (const bit of bits) node = (node[bit] ??= [null, null]) as Node;
    node[last] = encode(record);
  }
  const nodes = [root];
  for (const node of nodes) for (const child of node) if (Array.isArray(child)) nodes.push(child);
  const data: Buffer[] = [];
  let size = 0;
  const target = (child: Node | Buffer | null): number => {
    if (child === null) return nodes.length;
    if (Array.isArray(child)) return nodes.indexOf(child);
    data.push(child);
    size += child.length;
    return nodes.length + 16 + size - child.length;
  };
  const tree = Buffer.alloc(nodes.length * 8);
  for (const [n, node] of nodes.entries())
    for (const bit of [0, 1] as const) tree.writeUInt32BE(target(node[bit]), n * 8 + bit * 4);
  const metadata = encode({
    binary_format_major_version: 2n,
    binary_format_minor_version: 0n,
    build_epoch: 1_700_000_000n,
    database_type: "City",
    description: { en: "Cities of tests" },
    ip_version: 6n,
    languages: ["en"],
    node_count: BigInt(nodes.length),
    record_size: 32n,
  });
  const marker = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
  await writeFile(path, Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata]));
}
