// A certificate authority for one test, and certificates that it signs. All are PEM files in a
// folder that is removed when the test process ends.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { generate } from "selfsigned";

export interface PemPair {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

interface CertificateOptions {
  /**
   * The common name and the file name. If two certificates have the same name, the second
   * overwrites the first, as in a renewal. Default: "server".
   */
  readonly name?: string;
  readonly dns?: readonly string[];
  readonly addresses?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface TestAuthority {
  readonly folder: string;
  readonly ca: string;
  readonly caFile: string;
  server(options?: CertificateOptions): Promise<PemPair>;
  client(options?: Pick<CertificateOptions, "name" | "notBefore" | "notAfter">): Promise<PemPair>;
}

const dayMs = 86_400_000;
const base = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;
const ofAuthority = [
  { name: "basicConstraints", cA: true, critical: true },
  { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
] as const;

export async function createAuthority(name = "penstock test authority"): Promise<TestAuthority> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-pem-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const dates = {
    notBeforeDate: new Date(Date.now() - dayMs),
    notAfterDate: new Date(Date.now() + 30 * dayMs),
  };
  const own = await generate(nameOf(name), { ...base, ...dates, extensions: [...ofAuthority] });
  const caFile = write(folder, "ca.pem", own.cert);

  async function issue(
    options: CertificateOptions,
    usage: "serverAuth" | "clientAuth",
  ): Promise<PemPair> {
    const { name: called = "server", dns = [], addresses = [] } = options;
    const altNames = [
      ...dns.map((value) => ({ type: 2 as const, value })),
      ...addresses.map((ip) => ({ type: 7 as const, ip })),
    ];
    const issued = await generate(nameOf(called), {
      ...base,
      notBeforeDate: options.notBefore ?? new Date(Date.now() - dayMs),
      notAfterDate: options.notAfter ?? new Date(Date.now() + dayMs),
      ca: { key: own.private, cert: own.cert },
      extensions: [
        { name: "basicConstraints", cA: false, critical: true },
        { name: "keyUsage", digitalSignature: true, critical: true },
        { name: "extKeyUsage", [usage]: true },
        ...(altNames.length === 0 ? [] : [{ name: "subjectAltName" as const, altNames }]),
      ],
    });
    return {
      cert: issued.cert,
      key: issued.private,
      certFile: write(folder, `${called}.pem`, issued.cert),
      keyFile: write(folder, `${called}.key.pem`, issued.private),
    };
  }

  return {
    folder,
    ca: own.cert,
    caFile,
    server: (options = {}) =>
      issue({ dns: ["localhost"], addresses: ["127.0.0.1", "::1"], ...options }, "serverAuth"),
    client: (options = {}) => issue({ name: "client", ...options }, "clientAuth"),
  };
}

function nameOf(value: string): { name: string; value: string }[] {
  return [{ name: "commonName", value }];
}

function write(folder: string, name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}
