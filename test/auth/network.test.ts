import { expect, test } from "@jest/globals";
import { networkOf } from "../../src/auth/network.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:0:1:ffff:1:2:3", "2001:db8:0:1::/64"],
  ["2001:DB8::7", "2001:db8::/64"],
  ["::1", "::/64"],
  ["fe80::1%eth0", "unknown"],
  ["", "unknown"],
  ["no address", "unknown"],
])("%j is one network with all of %s", (ip, network) => expect(networkOf(ip)).toBe(network));
