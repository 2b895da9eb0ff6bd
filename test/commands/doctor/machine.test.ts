import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAuthority } from "../../kit/certificates.ts";
import { binary, penstockWith, temporaryFolder } from "../../kit/processes.ts";
import { doctor, expectOne, runOf } from "./doctor-kit.ts";

const dayMs = 86_400_000;

async function portOf(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return String((server.address() as AddressInfo).port);
}

function alone(variables: Record<string, string> = {}) {
  return doctor({ PENSTOCK_DATA_DIR: path.join(temporaryFolder(), "data"), ...variables });
}

describe("doctor", () => {
  test("reports ports in use", async () => {
    const web = await portOf(
      createHttpServer((_, response) => void response.writeHead(404).end("hello")),
    );
    const silent = await portOf(createServer(() => {}));
    const run = await alone({
      PENSTOCK_HOST: "127.0.0.1",
      PENSTOCK_PORT: web,
      PENSTOCK_ADMIN_PORT: silent,
    });
    expect(run.exitCode).toBe(1);
    expect(expectOne(run, "public port", "fail").found).toContain("a program that is not Penstock");
    expect(expectOne(run, "admin port", "fail").found).toContain("does not respond");
  });

  test("reports a free port and an address of another host", async () => {
    const servers = [createServer(), createServer()] as const;
    const port = await portOf(servers[0]);
    const adminPort = await portOf(servers[1]);
    for (const once of servers) await new Promise((resolve) => once.close(resolve));
    const run = await alone({
      PENSTOCK_PORT: port,
      PENSTOCK_ADMIN_HOST: "192.0.2.1",
      PENSTOCK_ADMIN_PORT: adminPort,
    });
    expect(expectOne(run, "public port", "ok").found).toBe(`${port} is free`);
    expect(expectOne(run, "admin port", "fail").fix).toBe("PENSTOCK_ADMIN_HOST=127.0.0.1");
  });

  test("reports too little memory and disk space", async () => {
    const run = await alone({
      PENSTOCK_INFLIGHT_BYTES_MAX: String(64 * 2 ** 30),
      PENSTOCK_WORKERS: "8",
      PENSTOCK_STREAM_BYTES_MAX: "999999999999999",
    });
    expect(run.exitCode).toBe(1);
    expect(expectOne(run, "memory", "warn").fix).toMatch(
      /PENSTOCK_INFLIGHT_BYTES_MAX=\d+ would fit/,
    );
    expect(expectOne(run, "disk", "fail").found).toContain("the gateway does not start");
  });

  test.each([["1024", "warn"]] as const)(
    "reports a limit of %s open files",
    async (limit, level) => {
      const preload = `ulimit -n ${limit}; exec "$0" "$@"`;
      const main = path.resolve(import.meta.dirname, "../../../src/main.ts");
      const args = [
        "doctor",
        "--json",
        "--port",
        "0",
        "--admin-port",
        "0",
        "--data-dir",
        temporaryFolder(),
      ];
      const env = { PATH: process.env["PATH"], PENSTOCK_NATS_SERVER: binary.file };
      const child = spawn("sh", ["-c", preload, process.execPath, main, ...args], {
        env,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said = { out: "", err: "" };
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        said.out += text;
      });
      const run = await runOf(Object.assign(child, { said }));
      expect(expectOne(run, "open files", level).found).toContain(
        `up to ${limit}, enough for some ${Number(limit) - 256} connections per process`,
      );
    },
  );

  test("reports certificates that have expired or expire soon", async () => {
    const authority = await createAuthority();
    const now = Date.now();
    const old = await authority.server({
      name: "old",
      notBefore: new Date(now - 9 * dayMs),
      notAfter: new Date(now - dayMs),
    });
    const soon = await authority.client({ name: "soon", notAfter: new Date(now + 5 * dayMs) });
    const run = await alone({
      PENSTOCK_NATS_URL: "nats://127.0.0.1:1",
      PENSTOCK_TLS_CERT: old.certFile,
      PENSTOCK_TLS_KEY: old.keyFile,
      PENSTOCK_NATS_CA: authority.caFile,
      PENSTOCK_NATS_CERT: soon.certFile,
      PENSTOCK_NATS_KEY: soon.keyFile,
    });
    expect(run.of("certificates").map(({ level }) => level)).toEqual(["fail", "ok", "warn"]);
    expect(run.of("certificates")[0]?.found).toMatch(/^PENSTOCK_TLS_CERT expired \d{4}/);
    expect(run.of("certificates")[2]?.found).toMatch(
      /^PENSTOCK_NATS_CERT expires .*, in [45]\.\d days$/,
    );

    const later = await authority.server({
      name: "later",
      notBefore: new Date(now + dayMs),
      notAfter: new Date(now + 9 * dayMs),
    });
    const early = await alone({
      PENSTOCK_TLS_CERT: later.certFile,
      PENSTOCK_TLS_KEY: later.keyFile,
    });
    expect(expectOne(early, "certificates", "fail").found).toContain("is not valid before");
  });

  test("reports the expiry of several CA certificates or of a chain", async () => {
    const authority = await createAuthority();
    const now = Date.now();
    const dates = { old: now - dayMs, soon: now + 5 * dayMs };
    const old = await authority.server({
      name: "old",
      notBefore: new Date(now - 9 * dayMs),
      notAfter: new Date(dates.old),
    });
    const soon = await authority.server({ name: "soon", notAfter: new Date(dates.soon) });
    const later = await authority.server({
      name: "later",
      notBefore: new Date(now + dayMs),
      notAfter: new Date(now + 40 * dayMs),
    });
    const file = path.join(authority.folder, "several.pem");
    const of = async (...pems: string[]) => {
      writeFileSync(file, pems.join("\n"));
      return await alone({ PENSTOCK_NATS_URL: "nats://127.0.0.1:1", PENSTOCK_NATS_CA: file });
    };
    expectOne(await of(authority.ca, soon.cert, later.cert), "certificates", "ok");
    const one = expectOne(await of(old.cert, authority.ca), "certificates", "warn");
    expect(one.found).toMatch(
      /^1 of the 2 CA certificates in PENSTOCK_NATS_CA have expired, .*; the last valid CA certificate expires \d{4}/,
    );
    expect(expectOne(await of(old.cert, soon.cert), "certificates", "warn").found).toMatch(
      /in [45]\.\d days$/,
    );
    expect(expectOne(await of(old.cert, old.cert), "certificates", "fail").found).toMatch(
      /^PENSTOCK_NATS_CA expired \d{4}/,
    );
    const early = expectOne(await of(old.cert, later.cert), "certificates", "fail");
    expect(early.found).toContain("is not valid before");

    writeFileSync(file, `${soon.cert}\n${old.cert}`);
    const chain = await alone({ PENSTOCK_TLS_CERT: file, PENSTOCK_TLS_KEY: soon.keyFile });
    expect(expectOne(chain, "certificates", "fail").found).toMatch(
      /^PENSTOCK_TLS_CERT expired \d{4}/,
    );
  });

  test("reports expired NATS credentials and a file without credentials", async () => {
    const file = path.join(temporaryFolder(), "user.creds");
    const claims = Buffer.from(
      JSON.stringify({ exp: Math.floor(Date.now() / 1_000) - 60 }),
    ).toString("base64url");
    const variables = { PENSTOCK_NATS_URL: "nats://127.0.0.1:1", PENSTOCK_NATS_CREDS: file };
    writeFileSync(
      file,
      `-----BEGIN NATS USER JWT-----\nhead.${claims}.signature\n------END NATS USER JWT------\n`,
    );
    expect(expectOne(await alone(variables), "certificates", "fail").found).toMatch(
      /^PENSTOCK_NATS_CREDS expired \d{4}/,
    );
    writeFileSync(file, "SUAM-not-to-be-seen");
    const run = await alone(variables);
    expect(expectOne(run, "certificates", "fail").found).toContain("contains no NATS credentials");
    expect(run.out).not.toContain("SUAM-not-to-be-seen");
  });

  test("reports all errors of the settings with exit code 2", async () => {
    const args = ["doctor", "--port", "x", "--partitions", "0"];
    const run = await runOf(penstockWith({ PENSTOCK_PROT: "1" }, ...args));
    expect(run.exitCode).toBe(2);
    expect(run.out).toMatch(
      /^fail {2}settings {2}--port: must be[\s\S]*--partitions: must be[\s\S]*PENSTOCK_PROT: no such/,
    );
    expect(run.out).toContain("3 checked: 0 ok, 0 warn, 3 fail");
  });
});
