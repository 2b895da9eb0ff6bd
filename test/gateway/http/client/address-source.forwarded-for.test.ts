import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createForwardedFor } from "../../../../src/gateway/http/client/address-source.ts";
import { addressOfText, createTrust, networksOf } from "../../../../src/platform/base/addresses.ts";
import { codePoint } from "../../../kit/code-points.ts";
import {
  connectTo,
  post,
  startTestServer,
  type TestServer,
  type Wire,
} from "../../../kit/http-server.ts";

const trusted = "127.0.0.1, 10.0.0.0/8,2001:db8:1::/48";
const trusts = createTrust(networksOf(trusted));
const proxy = "127.0.0.1";
const stranger = "127.0.0.2";
const bare = new Map([
  ["1.2.3.4:5", "1.2.3.4"],
  ["10.2.3.4:5", "10.2.3.4"],
  ["[2001:db8::9]:5", "2001:db8::9"],
  ['"[2001:db8:1::9]:5"', "2001:db8:1::9"],
  ["fe80::1%1", "fe80::1"],
]);
const many = (entry: string) => Array(400).fill(entry).join(",");

describe("the X-Forwarded-For header", () => {
  test.each([
    ["203.0.113.7", "203.0.113.7"],
    ["6.6.6.6, 203.0.113.7", "203.0.113.7"],
    ["6.6.6.6,203.0.113.7,10.1.2.3, 10.255.0.1", "203.0.113.7"],
    ["2001:DB8:0:0::7, 2001:db8:1:2::3", "2001:db8::7"],
    ["::ffff:203.0.113.7, ::ffff:10.0.0.1", "203.0.113.7"],
    ["\t203.0.113.7 \t", "203.0.113.7"],
    ["10.0.0.1, 10.0.0.2", "10.0.0.1"],
    ["6.6.6.6, 203.0.113.7:5678", "203.0.113.7"],
    ["203.0.113.7:5678", "203.0.113.7"],
    ["6.6.6.6:1, 203.0.113.7:5678, 10.0.0.1:443, [2001:db8:1::1]:80", "203.0.113.7"],
    ["6.6.6.6, [2001:DB8:0::7]:443", "2001:db8::7"],
    ["6.6.6.6, [2001:db8::7]", "2001:db8::7"],
    ["6.6.6.6, 2001:db8::7:443", "2001:db8::7:443"],
    ["6.6.6.6, [::ffff:203.0.113.7]:443", "203.0.113.7"],
    ["6.6.6.6, [::ffff:10.0.0.2]:443, 10.0.0.3:80", "6.6.6.6"],
    ['"6.6.6.6", "203.0.113.7"', "203.0.113.7"],
    ['6.6.6.6, " 203.0.113.7:80 "', "203.0.113.7"],
    ['6.6.6.6, "[2001:db8::7]:4711" ,"10.0.0.1:1"', "2001:db8::7"],
    ["6.6.6.6, [ 2001:db8::7 ]:80", "2001:db8::7"],
    ["6.6.6.6, fe80::1%eth0", "fe80::1"],
    ["6.6.6.6, [fe80::1%25eth0]:80", "fe80::1"],
    ["6.6.6.6, 203.0.113.7:", "203.0.113.7"],
    ["6.6.6.6, 203.0.113.7:http", proxy],
    ["6.6.6.6, 203.0.113.7:123456", proxy],
    ["6.6.6.6, 203.0.113.7%eth0", proxy],
    ["6.6.6.6, [203.0.113.7", proxy],
    ["6.6.6.6, [2001:db8::7]443", proxy],
    ['6.6.6.6, "203.0.113.7', proxy],
    ['6.6.6.6, 203.0.113.7"', proxy],
    ["6.6.6.6, []", proxy],
    ["6.6.6.6, :80", proxy],
    ['6.6.6.6, ""', proxy],
    ["6.6.6.6, for=203.0.113.7", proxy],
    [`6.6.6.6, fe80::1%${"x".repeat(200)}`, proxy],
    ["6.6.6.6, unknown, 10.0.0.2", "10.0.0.2"],
    ["6.6.6.6, _hidden", proxy],
    ["6.6.6.6,", proxy],
    ["6.6.6.6,, 10.0.0.2", "10.0.0.2"],
    [",", proxy],
    ["6.6.6.6, 1.2.3", proxy],
    ["6.6.6.6, 01.2.3.4", proxy],
    ["6.6.6.6, 1.2.3.4.5", proxy],
    ["6.6.6.6, 999.1.1.1", proxy],
    ["6.6.6.6, 203.0.113.7 10.0.0.1", proxy],
    ['6.6.6.6, {"$set":{}}', proxy],
    ["6.6.6.6, x\u00e4\u00ff", proxy],
    [`6.6.6.6,${many("10.0.0.9")}`, "10.0.0.9"],
    [many("6.6.6.6"), "6.6.6.6"],
    [`6.6.6.6,${many("x")}`, proxy],
  ])("of a trusted proxy names the client: %.60s", async (forwardedFor, client) => {
    const server = await startTestServer({
      recordIp: true,
      trustedProxies: trusted,
    });
    expect(await seen(server, await connectTo(server), { "X-Forwarded-For": forwardedFor })).toBe(
      client,
    );
    const other = await connectTo(server, "127.0.0.1", stranger);
    expect(await seen(server, other, { "X-Forwarded-For": forwardedFor })).toBe(stranger);
  });

  test("names the client of each request", async () => {
    const server = await startTestServer({ recordIp: true, trustedProxies: trusted });
    const wire = await connectTo(server);
    for (const client of ["203.0.113.1", "203.0.113.2", "203.0.113.1", "2001:db8::5"]) {
      expect(await seen(server, wire, { "X-Forwarded-For": client })).toBe(client);
    }
    expect(await seen(server, wire, {})).toBe(proxy);
    expect(await seen(server, wire, { "X-Forwarded-For": "" })).toBe(proxy);
  });

  test.each([
    [["6.6.6.6", "203.0.113.7"], "203.0.113.7"],
    [["", "203.0.113.7"], "203.0.113.7"],
    [["x", "6.6.6.6", "203.0.113.7, 10.0.0.1"], "203.0.113.7"],
    [["203.0.113.7", "10.0.0.1"], "203.0.113.7"],
    [["203.0.113.7", ""], proxy],
  ])("is read across several header lines: %j", async (lines, client) => {
    const server = await startTestServer({
      recordIp: true,
      trustedProxies: trusted,
    });
    const wire = await connectTo(server);
    const head = lines.map(
      (line, place) => `${place % 2 === 0 ? "X-Forwarded-For" : "x-forwarded-FOR"}: ${line}\r\n`,
    );
    wire.write(
      `POST /capture/ HTTP/1.1\r\nHost: a\r\n${head.join("Accept: */*\r\n")}Content-Length: 2\r\n\r\n{}`,
    );
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken.at(-1)?.exchange.clientAddress).toBe(client);
  });

  test("is ignored without trusted proxies or recorded addresses", async () => {
    for (const [recordIp, client] of [
      [true, proxy],
      [false, ""],
    ] as const) {
      const server = await startTestServer({ recordIp });
      expect(
        await seen(server, await connectTo(server), { "X-Forwarded-For": "203.0.113.7" }),
      ).toBe(client);
    }
  });

  test("gives the expected address for random entries", () => {
    const forwardedFor = createForwardedFor(trusts);
    const entry = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4().map((address) => `10.${address.split(".").slice(1).join(".")}`),
      fc.string({ unit: codePoint, maxLength: 12 }),
      fc.constantFrom("", " ", "unknown", "::ffff:1.2.3.4", ...bare.keys(), "::", "::1.2.3.4"),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 40 }), (entries) => {
        const text = entries.join(",");
        const client = forwardedFor(text);
        expect(forwardedFor(text)).toBe(client);
        expect(client).toBe(expected(text.split(",")));
      }),
      { numRuns: 200 },
    );
  });

  test("is read from the right, up to 32 entries", () => {
    let asked = 0;
    const forwardedFor = createForwardedFor((address) => {
      asked++;
      return trusts(address);
    });
    const last = Array.from({ length: 10_000 }, (_, place) => `10.0.${place % 256}.1`);
    expect(forwardedFor(["6.6.6.6", ...last].join())).toMatch(/^10\.0\.\d+\.1$/);
    expect(asked).toBeLessThanOrEqual(32);
  });

  test("normalises an IPv6 address", () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const address = addressOfText(text);
        if (address.includes(":"))
          expect(address).toBe(new URL(`http://[${text}]/`).hostname.slice(1, -1));
        else
          expect(new URL(`http://[${text}]/`).hostname).toBe(
            new URL(`http://[::ffff:${address}]/`).hostname,
          );
      }),
    );
  });
});

function expected(entries: readonly string[]): string {
  const addresses = entries.map((entry) => addressOfText(bare.get(entry) ?? entry.trim()));
  const known = addresses.slice(addresses.lastIndexOf("") + 1).slice(-32);
  return known.findLast((address) => !trusts(address)) ?? known[0] ?? "";
}

async function seen(
  server: TestServer,
  wire: Wire,
  headers: Record<string, string>,
): Promise<string | undefined> {
  wire.write(post("{}", headers));
  expect((await wire.reply()).status).toBe(200);
  return server.taken.at(-1)?.exchange.clientAddress;
}
