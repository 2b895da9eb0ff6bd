import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { createAuthority, type PemPair, type TestAuthority } from "../../kit/certificates.ts";

let authority: TestAuthority;
let client: PemPair;
let other: PemPair;

beforeAll(async () => {
  authority = await createAuthority();
  client = await authority.client();
  other = await authority.client({ name: "other" });
});

function file(name: string, text: string): string {
  const where = path.join(authority.folder, name);
  writeFileSync(where, text);
  return where;
}

function faultsOf(env: Record<string, string>): readonly string[] {
  const result = readConfig({ PENSTOCK_NATS_URL: "tls://127.0.0.1:4222", ...env }, {});
  return result.ok ? [] : result.faults;
}

describe("the settings for certificate files", () => {
  test("accept valid files", () => {
    const { caFile } = authority;
    expect(faultsOf({ PENSTOCK_NATS_CA: caFile })).toEqual([]);
    expect(
      faultsOf({ PENSTOCK_NATS_CERT: client.certFile, PENSTOCK_NATS_KEY: client.keyFile }),
    ).toEqual([]);
    const all = {
      PENSTOCK_NATS_CA: caFile,
      PENSTOCK_NATS_CERT: client.certFile,
      PENSTOCK_NATS_KEY: client.keyFile,
    };
    expect(faultsOf({ ...all, PENSTOCK_NATS_TOKEN: "t" })).toEqual([]);
  });

  test("name every unusable file in one error message", () => {
    const missing = path.join(authority.folder, "missing.pem");
    const broken = file(
      "broken.pem",
      "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n",
    );
    expect(
      faultsOf({
        PENSTOCK_NATS_CREDS: missing,
        PENSTOCK_NATS_CA: broken,
        PENSTOCK_NATS_CERT: client.keyFile,
        PENSTOCK_NATS_KEY: client.certFile,
      }),
    ).toEqual([
      `PENSTOCK_NATS_CREDS: cannot read ${missing}: ENOENT`,
      `PENSTOCK_NATS_CA: ${broken} contains an invalid certificate`,
      `PENSTOCK_NATS_CERT: ${client.keyFile} contains no PEM certificate`,
      `PENSTOCK_NATS_KEY: ${client.certFile} contains no PEM private key`,
    ]);
  });

  test("reject an encrypted, damaged or foreign key", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const locked = privateKey.export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase: "p",
    });
    const lockedFile = file("locked.pem", locked.toString());
    const cutFile = file("cut.pem", client.key.slice(0, 90));
    const withKey = (key: string) =>
      faultsOf({ PENSTOCK_NATS_CERT: client.certFile, PENSTOCK_NATS_KEY: key });
    expect(withKey(lockedFile)).toEqual([expect.stringContaining("without a passphrase")]);
    expect(withKey(cutFile)).toEqual([`PENSTOCK_NATS_KEY: ${cutFile} contains an invalid key`]);
    expect(withKey(other.keyFile)).toEqual([
      "PENSTOCK_NATS_KEY: is not the private key of the certificate in PENSTOCK_NATS_CERT",
    ]);
  });

  test("reject incomplete and conflicting credentials", () => {
    expect(faultsOf({ PENSTOCK_NATS_CERT: client.certFile })).toEqual([
      "PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY: set both or neither",
    ]);
    const alone = readConfig({ PENSTOCK_NATS_CA: authority.caFile }, {});
    expect(alone).toEqual({ ok: false, faults: ["PENSTOCK_NATS_CA: needs PENSTOCK_NATS_URL"] });
    const twice = faultsOf({ PENSTOCK_NATS_URL: "nats://u:p@h", PENSTOCK_NATS_TOKEN: "t" });
    expect(twice).toEqual([
      "PENSTOCK_NATS_TOKEN, PENSTOCK_NATS_CREDS and a user in PENSTOCK_NATS_URL: set only one",
    ]);
  });

  test.each([
    ["nats://u:s3cret@h:1,nats://u:0ther@h:2", "the same user"],
    ["nats://u:s3cret@h:99999", "must be nats://"],
    ["nats://u:s3cret@h/x", "must be nats://"],
    ["http://u:s3cret@h", "must be nats://"],
    ["nats://u:s3cret@", "must be nats://"],
  ])("reject the NATS URL %s", (url, fault) => {
    const faults = faultsOf({ PENSTOCK_NATS_URL: url });
    expect(faults).toEqual([expect.stringContaining(fault)]);
    expect(faults.join()).not.toMatch(/s3cret|0ther/);
  });
});
