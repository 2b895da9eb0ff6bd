import { isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createAddressReader } from "../../../src/platform/base/addresses.ts";
import { connectTo, post, startTestServer } from "../../kit/http-server.ts";

const read = createAddressReader();

function textOf(...bytes: number[]): string {
  return read(new Uint8Array(bytes).buffer);
}

describe("the text of a client address", () => {
  test.each([
    [[127, 0, 0, 1], "127.0.0.1"],
    [[255, 254, 1, 0], "255.254.1.0"],
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3], "10.1.2.3"],
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "::1"],
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "::"],
    [[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], "2001:db8:0:1::1"],
    [[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], "2001:db8:0:1:1:1:1:1"],
    [[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1], "2001:db8::1:0:0:1"],
    [[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "fe80::"],
    [[], ""],
  ])("for the bytes %j is %j", (bytes, text) => {
    expect(textOf(...bytes)).toBe(text);
  });

  test("equals the result of a URL parser for any IPv6 address", () => {
    const sparse = fc.oneof(
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.nat(255) },
    );
    fc.assert(
      fc.property(fc.array(sparse, { minLength: 16, maxLength: 16 }), (bytes) => {
        const hex = Buffer.from(bytes)
          .toString("hex")
          .replace(/....(?=.)/g, "$&:");
        const canonical = new URL(`http://[${hex}]/`).hostname.slice(1, -1);
        const text = textOf(...bytes);
        if (text.includes(".")) expect(canonical).toMatch(/^::ffff:/);
        else expect([text, isIPv6(text)]).toEqual([canonical, true]);
      }),
    );
  });

  test.each([
    ["127.0.0.1", true, "127.0.0.1"],
    ["::", true, "127.0.0.1"],
    ["127.0.0.1", false, ""],
  ])("on a server at %s that records addresses (%s) is %j", async (host, recordIp, text) => {
    const server = await startTestServer({ host, recordIp });
    const wire = await connectTo(server);
    wire.write(post("{}", { "X-Forwarded-For": "6.6.6.6" }));
    await wire.reply();
    expect(server.taken[0]!.exchange.clientAddress).toBe(text);
  });
});
