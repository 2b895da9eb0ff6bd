import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { describe, expect, onTestFinished, test } from "vitest";
import { type CertificateWatch, watchCertificate } from "../../../src/gateway/http/certificate.ts";
import { createAuthority, type PemPair } from "../../kit/certificates.ts";
import { post, startTestServer, type TestServer, until } from "../../kit/http-server.ts";

const authority = await createAuthority();
const lookEveryMs = 15;
const dayMs = 86_400_000;

describe("certificate renewal", () => {
  test("gives new connections the new certificate", async () => {
    const renewing = await start();
    const before = await secure(renewing);
    expect(shownBy(before)).toBe("first");
    for (const name of ["second", "third"]) {
      install(renewing, await authority.server({ name }));
      await until(() => renewing.said("info").length > 0, "it was renewed");
      expect(renewing.said("info")).toEqual(["certificate renewed"]);
      renewing.logged.length = 0;
      expect(shownBy(await secure(renewing))).toBe(name);
      expect(await answerTo(before)).toMatch(/^HTTP\/1.1 200 OK/);
    }
  });

  test("fails no request while new connections arrive continuously", async () => {
    const renewing = await start();
    const pairs = [
      await authority.server({ name: "odd" }),
      await authority.server({ name: "even" }),
    ];
    const shown = new Set<string>();
    const faults: unknown[] = [];
    let answered = 0;
    let stopped = false;
    const clients = Array.from({ length: 8 }, async () => {
      while (!stopped) {
        try {
          const socket = await secure(renewing);
          shown.add(shownBy(socket));
          if (!(await answerTo(socket)).startsWith("HTTP/1.1 200")) throw new Error("not 200");
          answered++;
          socket.destroy();
        } catch (error) {
          faults.push(error);
        }
      }
    });
    const renewals = 25;
    for (let renewal = 0; renewal < renewals; renewal++) {
      const from = answered;
      const { certFile, keyFile } = pairs[renewal % 2]!;
      copyFileSync(certFile, renewing.cert);
      copyFileSync(keyFile, renewing.key);
      renewing.server.http.renewCertificate();
      await until(() => answered > from + 10, "requests are answered after it");
    }
    stopped = true;
    await Promise.all(clients);
    expect(faults).toEqual([]);
    expect([...shown]).toEqual(expect.arrayContaining(["even", "odd"]));
  });

  test("detects a retargeted symlink, as in a Kubernetes secret", async () => {
    const folder = mkdtempSync(path.join(authority.folder, "secret-"));
    const [old, young] = [
      await authority.server({ name: "old" }),
      await authority.server({ name: "young" }),
    ];
    for (const [version, pair] of [old, young].entries()) {
      mkdirSync(path.join(folder, `..${version}`), { recursive: true });
      copyFileSync(pair.certFile, path.join(folder, `..${version}`, "tls.crt"));
      copyFileSync(pair.keyFile, path.join(folder, `..${version}`, "tls.key"));
    }
    symlinkSync("..0", path.join(folder, "..data"));
    for (const file of ["tls.crt", "tls.key"])
      symlinkSync(path.join("..data", file), path.join(folder, file));
    const renewing = await startOn(path.join(folder, "tls.crt"), path.join(folder, "tls.key"));
    expect(shownBy(await secure(renewing))).toBe("old");
    symlinkSync("..1", path.join(folder, "..data_tmp"));
    renameSync(path.join(folder, "..data_tmp"), path.join(folder, "..data"));
    await until(() => renewing.said("info").length === 1, "it was renewed");
    expect(shownBy(await secure(renewing))).toBe("young");
  });

  test.each([
    [
      "the certificate is replaced by a certificate of a different key",
      (renewing: Renewing, other: PemPair) => writeFileSync(renewing.cert, other.cert),
    ],
    [
      "the certificate is truncated",
      ({ cert, first }: Renewing) =>
        writeFileSync(cert, first.cert.slice(0, first.cert.length / 2)),
    ],
    ["the certificate is empty", ({ cert }: Renewing) => writeFileSync(cert, "")],
    ["the key is missing", ({ key }: Renewing) => renameSync(key, `${key}.away`)],
    [
      "the certificate's chain is damaged",
      ({ cert, first }: Renewing) => writeFileSync(cert, first.cert + first.cert.replace("M", "*")),
    ],
  ])("keeps the old certificate if %s", async (_what, damage) => {
    const renewing = await start();
    const { expirySeconds } = renewing.watch;
    const other = await authority.server({
      name: "other",
      notAfter: new Date(Date.now() + 9 * dayMs),
    });
    damage(renewing, other);
    await until(() => renewing.said("error").length === 1, "it is logged");
    expect(shownBy(await secure(renewing))).toBe("first");
    expect(renewing.watch.expirySeconds).toBe(expirySeconds);
    const looksLater = performance.now() + 10 * lookEveryMs;
    await until(() => performance.now() > looksLater, "there were more looks");
    expect(renewing.said("error").length).toBe(1);

    install(renewing, other);
    await until(() => renewing.said("info").length === 1, "it was renewed");
    expect(shownBy(await secure(renewing))).toBe("other");
    expect(renewing.watch.expirySeconds).toBeGreaterThan(expirySeconds);
  });

  test("retries the same files after a temporary error", async () => {
    const renewing = await start(2);
    const { http } = renewing.server;
    const renew = http.renewCertificate.bind(http);
    const faults = ["EMFILE", "EMFILE", "EIO"];
    const triedMonotonicMs: number[] = [];
    http.renewCertificate = () => {
      triedMonotonicMs.push(performance.now());
      const fault = faults.shift();
      if (fault !== undefined) throw new Error(fault);
      renew();
    };
    install(renewing, await authority.server({ name: "next" }));
    await until(() => renewing.said("info").length === 1, "it was renewed");
    expect(faults).toEqual([]);
    const [first = 0, second = 0] = triedMonotonicMs;
    expect(second - first).toBeGreaterThan(2 * 50);
    expect(renewing.logged.map(([level]) => level)).toEqual(["error", "error", "info"]);
    expect(shownBy(await secure(renewing))).toBe("next");
  });

  test("loads a certificate pair once", async () => {
    const renewing = await start();
    const next = await authority.server({ name: "next" });
    writeFileSync(renewing.cert, next.cert);
    writeFileSync(renewing.key, next.key);
    await until(() => renewing.said("info").length === 1, "it was renewed");
    expect(renewing.logged.map(([level]) => level)).toEqual(["info"]);
    const { server } = renewing;
    server.http.renewCertificate = () => expect.unreachable("the same is not renewed");
    writeFileSync(renewing.cert, next.cert);
    const looksLater = performance.now() + 10 * lookEveryMs;
    await until(() => performance.now() > looksLater, "there were more looks");
    expect(renewing.logged.length).toBe(1);
  });

  test.each([
    [
      "certificate expired",
      { notBefore: new Date(Date.now() - 9 * dayMs), notAfter: new Date(Date.now() - dayMs) },
    ],
    [
      "certificate not valid yet",
      { notBefore: new Date(Date.now() + dayMs), notAfter: new Date(Date.now() + 9 * dayMs) },
    ],
  ])("serves a certificate outside its validity dates with a warning: %s", async (what, dates) => {
    const pair = await authority.server({ name: "first", ...dates });
    const renewing = await startOn(pair.certFile, pair.keyFile);
    expect(renewing.said("warn")).toEqual([expect.stringContaining(what)]);
    expect(renewing.watch.expirySeconds).toBe(Math.floor(dates.notAfter.getTime() / 1_000));
    await expect(secure(renewing)).rejects.toThrow(/expired|not yet valid/);
  });

  test.each([
    [2_048, []],
    [3_072, [expect.stringMatching(/RSA key of 3072 bits: .* use an ECDSA key \(P-256\)$/)]],
  ])("serves an RSA key of %i bits, with a warning above 2048", async (keySize, warnings) => {
    const folder = mkdtempSync(path.join(authority.folder, "rsa-"));
    const { cert, private: key } = await generate([{ name: "commonName", value: "rsa" }], {
      keySize,
      algorithm: "sha256",
      extensions: [],
    });
    const [certFile, keyFile] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const renewing = await startOn(certFile, keyFile);
    expect(renewing.said("warn")).toEqual(warnings);
    const socket = connect({
      host: "127.0.0.1",
      port: renewing.server.port,
      rejectUnauthorized: false,
    });
    onTestFinished(() => void socket.destroy());
    await once(socket, "secureConnect");
    expect(await answerTo(socket)).toMatch(/^HTTP\/1.1 200 OK/);
  });
});

interface Renewing {
  readonly first: PemPair;
  readonly cert: string;
  readonly key: string;
  readonly server: TestServer;
  readonly watch: CertificateWatch;
  readonly logged: [level: string, message: string][];
  said(level: string): string[];
}

async function start(everyMs?: number): Promise<Renewing> {
  const first = await authority.server({ name: "first" });
  const folder = mkdtempSync(path.join(authority.folder, "own-"));
  const [cert, key] = [path.join(folder, "tls.crt"), path.join(folder, "tls.key")];
  copyFileSync(first.certFile, cert);
  copyFileSync(first.keyFile, key);
  return { ...(await startOn(cert, key, everyMs)), first };
}

async function startOn(
  cert: string,
  key: string,
  everyMs = lookEveryMs,
): Promise<Omit<Renewing, "first">> {
  const logged: [string, string][] = [];
  const note = (level: string) => (_: object, message: string) =>
    void logged.push([level, message]);
  const watch = await watchCertificate({
    files: { cert, key },
    log: { info: note("info"), warn: note("warn"), error: note("error") },
    nowMs: Date.now,
    renew: () => server.http.renewCertificate(),
    everyMs,
  });
  onTestFinished(() => watch.close());
  const server = await startTestServer({ certificate: { cert, key } });
  const said = (level: string) =>
    logged.filter(([of]) => of === level).map(([, message]) => message);
  return { cert, key, server, watch, logged, said };
}

function install({ cert, key }: Pick<Renewing, "cert" | "key">, pair: PemPair): void {
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key);
}

async function secure({ server }: Pick<Renewing, "server">): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port: server.port, ca: authority.ca });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

function shownBy(socket: TLSSocket): string {
  return String(socket.getPeerCertificate().subject.CN);
}

async function answerTo(socket: TLSSocket): Promise<string> {
  const answer = once(socket, "data");
  socket.write(post("{}"));
  return String((await answer)[0]);
}
