// Errors in the public port's settings for proxies and certificates, all found before anything
// starts.

import { describe, expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { createAuthority } from "../../kit/certificates.ts";

const authority = await createAuthority();
const [own, other] = [
  await authority.server({ name: "own" }),
  await authority.server({ name: "other" }),
];

describe("public port settings are checked", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0/8 ipv4"],
    ["127.0.0.1, 2001:DB8::/32,::1", "127.0.0.1/32 ipv4,2001:db8::/32 ipv6,::1/128 ipv6"],
    ["0.0.0.0/0,::/0", "0.0.0.0/0 ipv4,::/0 ipv6"],
    ["", ""],
  ])("trusted proxies %j", (text, networks) => {
    const result = readConfig({ PENSTOCK_TRUSTED_PROXIES: text }, {});
    const found = result.ok ? result.config.trustedProxies : undefined;
    expect(
      found?.map(({ address, prefix, family }) => `${address}/${prefix} ${family}`).join(),
    ).toBe(networks);
  });

  test.each([
    "x",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0/8",
    "fe80::1%eth0",
    "::ffff:10.0.0.0/104",
  ])("rejects an invalid trusted proxy: %s", (faulty) => {
    const fault = `PENSTOCK_TRUSTED_PROXIES: must be addresses or networks such as 10.0.0.0/8 (got "${faulty}", "y")`;
    expect(faultsOf({ PENSTOCK_TRUSTED_PROXIES: `10.0.0.1,${faulty},y` })).toEqual([fault]);
  });

  test("rejects too many", () => {
    const text = Array(257).fill("10.0.0.1").join();
    expect(faultsOf({ PENSTOCK_TRUSTED_PROXIES: text })).toEqual([
      expect.stringContaining("at most 256 networks"),
    ]);
  });

  test("requires trusted proxies for the PROXY protocol, and excludes it with TLS", () => {
    const tls = { PENSTOCK_TLS_CERT: own.certFile, PENSTOCK_TLS_KEY: own.keyFile };
    expect(faultsOf({ PENSTOCK_PROXY_PROTOCOL: "true" })).toEqual([
      expect.stringMatching(/needs PENSTOCK_TRUSTED_/),
    ]);
    expect(faultsOf({ PENSTOCK_PROXY_PROTOCOL: "true", PENSTOCK_TRUSTED_PROXIES: "" }).length).toBe(
      1,
    );
    expect(faultsOf({ PENSTOCK_PROXY_PROTOCOL: "true", PENSTOCK_TRUSTED_PROXIES: "::1" })).toEqual(
      [],
    );
    const all = { ...tls, PENSTOCK_PROXY_PROTOCOL: "true", PENSTOCK_TRUSTED_PROXIES: "::1" };
    expect(faultsOf(all)).toEqual([
      expect.stringMatching(/^PENSTOCK_PROXY_PROTOCOL: cannot .* PENSTOCK_TLS_CERT/),
    ]);
  });

  test.each([
    ["a certificate alone", { cert: own.certFile }, /set both or neither/],
    ["a key alone", { key: own.keyFile }, /set both or neither/],
    [
      "the key of another",
      { cert: own.certFile, key: other.keyFile },
      /^PENSTOCK_TLS_KEY: is not the private key/,
    ],
    [
      "no such file",
      { cert: "/nowhere", key: own.keyFile },
      /^PENSTOCK_TLS_CERT: cannot read \/nowhere: ENOENT/,
    ],
    [
      "no certificate",
      { cert: own.keyFile, key: own.keyFile },
      /^PENSTOCK_TLS_CERT: .*no PEM certificate/,
    ],
    [
      "no key",
      { cert: own.certFile, key: own.certFile },
      /^PENSTOCK_TLS_KEY: .*no PEM private key/,
    ],
  ])("%s", (_what, { cert, key }: { cert?: string; key?: string }, fault) => {
    expect(faultsOf({ PENSTOCK_TLS_CERT: cert, PENSTOCK_TLS_KEY: key })).toEqual([
      expect.stringMatching(fault),
    ]);
  });

  test("accepts a matching pair", () => {
    expect(faultsOf({ PENSTOCK_TLS_CERT: own.certFile, PENSTOCK_TLS_KEY: own.keyFile })).toEqual(
      [],
    );
  });
});

describe("the public and the admin port", () => {
  const both = { PENSTOCK_PORT: "8001", PENSTOCK_ADMIN_PORT: "8001" };

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::"],
  ])("rejects one port for both, on %s and %s", (host, adminHost) => {
    expect(faultsOf({ ...both, PENSTOCK_HOST: host, PENSTOCK_ADMIN_HOST: adminHost })).toEqual([
      "PENSTOCK_PORT and PENSTOCK_ADMIN_PORT: both are 8001; they must differ",
    ]);
  });

  test("accepts one number on two addresses, or any free ones", () => {
    expect(faultsOf({ ...both, PENSTOCK_HOST: "127.0.0.1", PENSTOCK_ADMIN_HOST: "::1" })).toEqual(
      [],
    );
    expect(faultsOf({ PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0" })).toEqual([]);
  });

  test("ignores the port of the effects process in the gateway", () => {
    expect(faultsOf({ ...both, PENSTOCK_ADMIN_PORT: "0", PENSTOCK_EFFECTS_PORT: "8001" })).toEqual(
      [],
    );
  });
});

function faultsOf(env: Record<string, string | undefined>): readonly string[] {
  const result = readConfig(env, {});
  return result.ok ? [] : result.faults;
}
