import { describe, expect, test } from "@jest/globals";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createSocket } from "node:dgram";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { PublicAgent } from "../../src/network/agent.ts";
import { postPublicly } from "../../src/network/publicPost.ts";
import {
  AddressRefused,
  AddressUnknown,
  isPublicAddress,
  resolvePublicAddress,
} from "../../src/network/publicAddress.ts";
import { testCertificate } from "../harness/certificate.ts";

const closed = { loopback: false };
const open = { loopback: true };

describe("IP addresses", () => {
  test.each([
    ["this network", "0.0.0.0", "0.1.2.3", "::"],
    ["loopback", "127.0.0.1", "127.255.255.254", "::1"],
    ["private", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1"],
    ["shared by a carrier", "100.64.0.1", "100.127.255.255"],
    ["link-local", "169.254.1.1", "fe80::1", "febf::1"],
    ["metadata of clouds", "169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"],
    [
      "protocols, tests and documentation",
      "192.0.0.8",
      "192.0.2.1",
      "198.18.0.1",
      "198.51.100.1",
      "203.0.113.1",
    ],
    ["documentation in IPv6", "2001:db8::1", "3fff::1"],
    ["relays", "192.88.99.1", "2002:7f00:1::1", "2001::1"],
    ["multicast and reserved", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "ff02::1"],
    ["mapped and compatible", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "::ffff:0:7f00:1"],
    ["NAT64", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"],
    ["site-local, discarded, segment routing", "fec0::1", "100::1", "5f00::1"],
    ["no address", "", "localhost", "1.2.3", "::g"],
  ])("%s: not public", (_name, ...addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });

  test("public ones", () => {
    const addresses = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"];
    expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([]);
  });
});

describe("URLs", () => {
  test.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://１２７.０.０.１/",
    "https://127.0.0.1./",
    "https://localhost/",
    "https://localhost./",
    "https://LOCALHOST/",
    "https://api.localhost/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[64:ff9b:1::a9fe:a9fe]/",
    "https://[fd00:ec2::254]/",
    "https://[::]/",
    "https://0/",
    "https://0300.0250.0.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/",
    "https://10.0.0.1:8443/",
    "https://8.8.8.8:443@127.0.0.1/",
    "https://127.0.0.1:443@8.8.8.8/",
    "https://8.8.8.8:65535/",
    "https://user@8.8.8.8/",
    "https://user:password@8.8.8.8/",
    "https://8.8.8.8:22/",
    "https://8.8.8.8:80/",
    "https://8.8.8.8:0/",
    "http://8.8.8.8/",
    "ftp://8.8.8.8/",
    "file:///etc/passwd",
    "//8.8.8.8/",
    "https://",
    "8.8.8.8",
    "",
  ])("%s is refused", async (text) => {
    await expect(resolvePublicAddress(text, closed)).rejects.toThrow(AddressRefused);
  });

  test("a public one is accepted, with the checked address", async () => {
    for (const [text, address] of [
      ["https://8.8.8.8/hooks?a=b", "8.8.8.8"],
      ["https://8.8.8.8:8443/", "8.8.8.8"],
      ["https://[2606:4700::1111]/", "2606:4700::1111"],
    ] as const)
      expect(await resolvePublicAddress(text, closed)).toMatchObject({
        addresses: [{ address }],
        isLoopback: false,
      });
  });

  test("refuses an unknown host name", async () => {
    await expect(resolvePublicAddress("https://nobody.invalid/", closed)).rejects.toThrow(AddressUnknown);
  });

  test("in development this machine is permitted, on any port, and nothing else", async () => {
    for (const text of ["https://localhost:3000/", "https://127.0.0.1:9/", "https://[::1]:9/"])
      expect(await resolvePublicAddress(text, open)).toMatchObject({ isLoopback: true });
    for (const text of [
      "https://10.0.0.1/",
      "https://169.254.169.254/",
      "https://8.8.8.8:9/",
      "http://localhost/",
    ])
      await expect(resolvePublicAddress(text, open)).rejects.toThrow(AddressRefused);
  });
});

/** A real name server with a list of responses per question; the last one is repeated. */
async function nameServer(answers: string[][]) {
  const questions: string[] = [];
  const times = new Map<number, number>();
  const server = createSocket("udp4");
  server.on("message", (question, from) => {
    // The name ends at the first empty label, followed by type and class.
    const end = question.indexOf(0, 12) + 5;
    const type = question.readUInt16BE(end - 4);
    const time = times.get(type) ?? 0;
    times.set(type, time + 1);
    questions.push(type === 1 ? "A" : type === 28 ? "AAAA" : String(type));
    const records = (answers[Math.min(time, answers.length - 1)] ?? [])
      .filter((address) => address.includes(":") === (type === 28))
      .map((address) => {
        const data =
          type === 28
            ? Buffer.from(address.replaceAll(":", ""), "hex")
            : Buffer.from(address.split(".").map(Number));
        const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
        return Buffer.concat([head, data]);
      });
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(records.length, 6);
    header.writeUInt32BE(0, 8);
    server.send(Buffer.concat([header, question.subarray(12, end), ...records]), from.port, from.address);
  });
  await new Promise<void>((done) => server.bind(0, "127.0.0.1", done));
  return {
    questions,
    policy: { loopback: false, nameServers: [`127.0.0.1:${(server.address() as AddressInfo).port}`] },
    [Symbol.asyncDispose]: () => new Promise<void>((done) => server.close(() => done())),
  };
}

/** The addresses to which this process attempts to connect during the work. */
async function connections(work: () => Promise<unknown>): Promise<string[]> {
  const tried: string[] = [];
  const watch = (message: unknown) =>
    (message as { socket: Socket }).socket.on("connectionAttempt", (ip: string, port: number) =>
      tried.push(`${ip} ${port}`),
    );
  subscribe("net.client.socket", watch);
  try {
    await work();
  } finally {
    unsubscribe("net.client.socket", watch);
  }
  return tried;
}

describe("host names", () => {
  const post = (policy: { loopback: boolean; nameServers: string[] }) =>
    postPublicly("https://rebind.example:8443/hooks", {
      ...policy,
      headers: {},
      body: "{}",
      timeoutMs: 250,
      answerLimit: 1000,
    });

  test("one that resolves to a public address and then to loopback: the checked address is used, and the next attempt is refused", async () => {
    await using server = await nameServer([["8.8.8.8"], ["127.0.0.1"]]);
    expect(await connections(() => post(server.policy))).toEqual(["8.8.8.8 8443"]);
    // Resolved once: there is no second response that could contain another address.
    expect(server.questions.toSorted()).toEqual(["A", "AAAA"]);
    let result;
    expect(await connections(async () => (result = await post(server.policy)))).toEqual([]);
    expect(result).toMatchObject({
      answer: undefined,
      failure: "There was no answer: This host is not on a public network.",
    });
  });

  test.each([
    ["one of them private", ["8.8.8.8", "10.0.0.1"]],
    ["loopback in IPv6 only", ["8.8.8.8", "0000:0000:0000:0000:0000:0000:0000:0001"]],
    ["the metadata service", ["169.254.169.254"]],
    ["NAT64", ["0064:ff9b:0000:0000:0000:0000:7f00:0001"]],
    ["6to4", ["2002:7f00:0001:0000:0000:0000:0000:0000"]],
    ["mapped", ["0000:0000:0000:0000:0000:ffff:7f00:0001"]],
    ["a carrier's", ["100.64.0.1"]],
  ])("%s: refused without a connection", async (_name, answers) => {
    await using server = await nameServer([answers]);
    await expect(resolvePublicAddress("https://hooks.example/", server.policy)).rejects.toThrow(
      AddressRefused,
    );
    expect(await connections(() => post(server.policy))).toEqual([]);
  });

  test("a kept connection is used for a name only while it resolves to the same addresses", async () => {
    await using names = await nameServer([["127.0.0.1"], ["127.0.0.1"], ["127.0.0.2"], ["10.0.0.1"]]);
    const reached: (string | undefined)[] = [];
    const server = createServer(await testCertificate(), (request, response) => {
      reached.push(request.socket.localAddress);
      request.resume().on("end", () => response.writeHead(204).end());
    });
    await new Promise<void>((done) => server.listen(0, "0.0.0.0", done));
    const agent = new PublicAgent();
    const address = `https://rebind.example:${(server.address() as AddressInfo).port}/hooks`;
    const send = () =>
      postPublicly(address, {
        ...names.policy,
        loopback: true,
        headers: {},
        body: "{}",
        timeoutMs: 5_000,
        answerLimit: 1000,
        agent,
      });
    try {
      const made = await connections(async () => {
        for (let n = 0; n < 3; n += 1) expect(await send()).toMatchObject({ answer: { status: 204 } });
        expect(await send()).toMatchObject({
          answer: undefined,
          failure: "There was no answer: This host is not on a public network.",
        });
      });
      expect(reached).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.2"]);
      expect(made.map((one) => one.split(" ")[0])).toEqual(["127.0.0.1", "127.0.0.2"]);
    } finally {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  });

  test("public in both families is accepted", async () => {
    await using server = await nameServer([["8.8.8.8", "2606:4700:0000:0000:0000:0000:0000:1111"]]);
    const { addresses } = await resolvePublicAddress("https://hooks.example/", server.policy);
    expect(addresses).toEqual([
      { address: "8.8.8.8", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
  });
});
