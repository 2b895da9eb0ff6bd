import { describe, expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { createAuthority } from "../../kit/certificates.ts";

const authority = await createAuthority();
const [own, other] = [
  await authority.server({ name: "own" }),
  await authority.server({ name: "other" }),
];

describe("the settings of the public port", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0/8 ipv4"],
    ["127.0.0.1, 2001:DB8::/32,::1", "127.0.0.1/32 ipv4,2001:db8::/32 ipv6,::1/128 ipv6"],
    ["0.0.0.0/0,::/0", "0.0.0.0/0 ipv4,::/0 ipv6"],
    ["", ""],
  ])("accept the trusted proxies %j", (text, networks) => {
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
  ])("reject an invalid trusted proxy: %s", (faulty) => {
    const fault = `PENSTOCK_TRUSTED_PROXIES: must be addresses or networks such as 10.0.0.0/8 (got "${faulty}", "y")`;
    expect(faultsOf({ PENSTOCK_TRUSTED_PROXIES: `10.0.0.1,${faulty},y` })).toEqual([fault]);
  });

  test("reject more than 256 trusted proxies", () => {
    const text = Array(257).fill("10.0.0.1").join();
    expect(faultsOf({ PENSTOCK_TRUSTED_PROXIES: text })).toEqual([
      expect.stringContaining("at most 256 networks"),
    ]);
  });

  test("require trusted proxies for the PROXY protocol", () => {
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
      "the key of another certificate",
      { cert: own.certFile, key: other.keyFile },
      /^PENSTOCK_TLS_KEY: is not the private key/,
    ],
    [
      "a missing file",
      { cert: "/nowhere", key: own.keyFile },
      /^PENSTOCK_TLS_CERT: cannot read \/nowhere: ENOENT/,
    ],
    [
      "a file without a certificate",
      { cert: own.keyFile, key: own.keyFile },
      /^PENSTOCK_TLS_CERT: .*no PEM certificate/,
    ],
    [
      "a file without a key",
      { cert: own.certFile, key: own.certFile },
      /^PENSTOCK_TLS_KEY: .*no PEM private key/,
    ],
  ])("reject %s", (_what, { cert, key }: { cert?: string; key?: string }, fault) => {
    expect(faultsOf({ PENSTOCK_TLS_CERT: cert, PENSTOCK_TLS_KEY: key })).toEqual([
      expect.stringMatching(fault),
    ]);
  });

  test("accept a matching certificate and key", () => {
    expect(faultsOf({ PENSTOCK_TLS_CERT: own.certFile, PENSTOCK_TLS_KEY: own.keyFile })).toEqual(
      [],
    );
  });
});

describe("the public port and the admin port", () => {
  const both = { PENSTOCK_PORT: "8001", PENSTOCK_ADMIN_PORT: "8001" };

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::"],
  ])("must have different numbers on %s and %s", (host, adminHost) => {
    expect(faultsOf({ ...both, PENSTOCK_HOST: host, PENSTOCK_ADMIN_HOST: adminHost })).toEqual([
      "PENSTOCK_PORT and PENSTOCK_ADMIN_PORT: both are 8001; they must differ",
    ]);
  });

  test("may have the same number on two addresses", () => {
    expect(faultsOf({ ...both, PENSTOCK_HOST: "127.0.0.1", PENSTOCK_ADMIN_HOST: "::1" })).toEqual(
      [],
    );
    expect(faultsOf({ PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0" })).toEqual([]);
  });

  test("may have the number of the effects' port in a gateway", () => {
    expect(faultsOf({ ...both, PENSTOCK_ADMIN_PORT: "0", PENSTOCK_EFFECTS_PORT: "8001" })).toEqual(
      [],
    );
  });
});

function faultsOf(env: Record<string, string | undefined>): readonly string[] {
  const result = readConfig(env, {});
  return result.ok ? [] : result.faults;
}
