import { expect, test } from "@jest/globals";
import { networkOf } from "../../src/network/networkOf.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:0:1:ffff:1:2:3", "2001:db8:0:1::/64"],
  ["2001:DB8::7", "2001:db8::/64"],
  ["::1", "::/64"],
  ["fe80::1%eth0", "unknown"],
  ["", "unknown"],
  ["no address", "unknown"],
  ["::FFFF:203.0.113.7", "203.0.113.7"],
  ["x::ffff:203.0.113.7", "unknown"],
  ["1::ffff:203.0.113.7", "1::/64"],
  ["::ffff:1", "::/64"],
  ["::", "::/64"],
  ["1:2:3:4::", "1:2:3:4::/64"],
  ["1::4:5:6:7", "1::/64"],
  ["1::3:4:5:6:7:8", "1:0:3:4::/64"],
  ["1::5:6:7:8:9", "1:0:0:5::/64"],
  [undefined, "unknown"],
])("%j is in one network with all of %s", (ip, network) => expect(networkOf(ip)).toBe(network));
