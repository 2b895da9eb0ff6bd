import { describe, expect, test } from "vitest";
import { checkVersion } from "../../../src/commands/doctor/nats-checks.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";
import {
  doctorAt,
  expectOne,
  makeStreams,
  monitorOf,
  relayTo,
  serverWith,
  streamSettings,
} from "./doctor-kit.ts";

const monitoring = 'http: "127.0.0.1:-1"';

function account(limits: string): string {
  return `accounts { A { jetstream { ${limits} }, users [ { user: a, password: a } ] } }\nno_auth_user: a`;
}

describe("doctor", () => {
  test("reports a small max_payload and more replicas than servers", async () => {
    const server = await serverWith({ maxPayload: 65_536 });
    const run = await doctorAt(server, { PENSTOCK_REPLICAS: "3" });
    expect(run.exitCode).toBe(1);
    expect(expectOne(run, "max_payload", "fail").found).toContain("64.0 KiB");
    expect(expectOne(run, "replicas", "fail").fix).toContain("PENSTOCK_REPLICAS=1");
    expect(expectOne(run, "sync_interval", "warn").found).toContain(
      "the client API does not report it",
    );
  });

  test("reports a configured frame size above max_payload", async () => {
    const server = await serverWith({ maxPayload: 1_048_576 });
    const run = await doctorAt(server, { PENSTOCK_FRAME_BYTES_MAX: "2097152" });
    expect(expectOne(run, "max_payload", "warn").fix).toContain(
      "PENSTOCK_FRAME_BYTES_MAX to 1048064",
    );
  });

  test("reports a server without JetStream", async () => {
    const run = await doctorAt(await serverWith({ jetstream: false }));
    expect(run.exitCode).toBe(1);
    expect(expectOne(run, "jetstream", "fail").found).toContain("without JetStream");
  });

  test("reports a server with little disk space and infrequent fsyncs", async () => {
    const server = await serverWith({
      maxFileStore: 134_217_728,
      syncInterval: "10s",
      extraConfig: monitoring,
    });
    const sizes = { PENSTOCK_STREAM_BYTES_MAX: "104857600" };
    const seen = await doctorAt(server, sizes, { monitor: monitorOf(server) });
    expect(seen.exitCode).toBe(1);
    const { found, fix } = expectOne(seen, "jetstream", "fail");
    expect(found).toContain("only 128.0 MiB of the server's 128.0 MiB are left");
    expect(expectOne(seen, "sync_interval", "warn").found).toMatch(/^10 s at /);

    const fitting = /PENSTOCK_STREAM_BYTES_MAX=(\d+)/.exec(fix ?? "")?.[1] ?? "";
    const then = await doctorAt(
      server,
      { PENSTOCK_STREAM_BYTES_MAX: fitting },
      { monitor: monitorOf(server) },
    );
    expectOne(then, "jetstream", "ok");
    await makeStreams(server, { ...streamSettings, streamBytesMax: Number(fitting) });
    // The reserved space already includes existing streams.
    const promised = await doctorAt(
      server,
      { PENSTOCK_STREAM_BYTES_MAX: fitting },
      { monitor: monitorOf(server) },
    );
    expectOne(promised, "jetstream", "ok");

    const unseen = await doctorAt(server, sizes);
    expect(expectOne(unseen, "jetstream", "warn").fix).toContain("--monitor");
  });

  test.each([
    ["max_file: 80MB", /only 80\.0 MiB of the account's 80\.0 MiB are left/, "max_file"],
    ["max_file: 1GB, max_streams: 3", /has 0 of at most 3 streams: 4 more/, "max_streams"],
    [
      "max_file: 1GB, disk_max_stream_bytes: 10MB",
      /exceeds the account's limit of 10\.0 MiB per stream/,
      "PENSTOCK_STREAM_BYTES_MAX=",
    ],
    [
      "max_file: 1GB, max_bytes_required: true",
      /a byte limit for each stream/,
      "nats kv add penstock_projects",
    ],
  ])("reports an account with %s", async (limits, fault, fix) => {
    const server = await serverWith({ extraConfig: account(limits) });
    const run = await doctorAt(server, { PENSTOCK_STREAM_BYTES_MAX: "52428800" });
    expect(run.exitCode).toBe(1);
    const found = expectOne(run, "jetstream", "fail");
    expect(found.found).toMatch(fault);
    expect(found.fix).toContain(fix);
  });

  test("reports an account that requires a byte limit for the registry", async () => {
    const server = await serverWith({
      extraConfig: account("max_file: 1GB, max_bytes_required: true"),
    });
    const run = await doctorAt(server, { PENSTOCK_HUB_DOMAIN: "hub" });
    expect(expectOne(run, "jetstream", "fail").fix).toContain(
      "--mirror=penstock_projects --mirror-domain=hub",
    );
  });

  test("reports an account that has room only for the streams", async () => {
    const server = await serverWith({ extraConfig: account("max_file: 100MB") });
    const run = await doctorAt(server, { PENSTOCK_STREAM_BYTES_MAX: "52428800" });
    expect(expectOne(run, "jetstream", "warn").found).toContain("no storage for the usage record");
  });

  test.each([
    ["2.8.4", "fail", "older than 2.9"],
    ["2.9.9", "warn", "no sync_interval"],
    ["2.10.21", "warn", "can lose a stream when it is killed"],
  ] as const)("reports a known problem of nats-server %s", async (version, level, words) => {
    const server = await serverWith();
    const relay = await relayTo(server, (text) =>
      text.replace(/"version":"([^"]+)",/, (all) => `"version":"${version}",`.padEnd(all.length)),
    );
    expect(expectOne(await doctorAt(relay), "version", level).found).toContain(words);
  });

  test.each([
    ["2.10.27", "fail", ["sequence 0", "disk of a node is lost", "Jepsen", "stream is full"]],
    ["2.11.17", "fail", ["disk of a node is lost", "Jepsen", "stream is full"]],
    ["2.12.15", "warn", ["Jepsen", "stream is full"]],
    ["2.14.6", "warn", ["stream is full", "sync_interval"]],
    ["2.14.7", "ok", []],
    ["2.15.1", "ok", []],
  ] as const)("reports whether a cluster with nats-server %s is safe", (version, level, words) => {
    const finding = checkVersion(version, true);
    expect(finding.level).toBe(level);
    for (const word of words) expect(finding.found).toContain(word);
    if (level !== "ok") expect(finding.fix).toContain("2.14.7, or 2.15");
  });

  test("warns of a single node from 2.10.23 to below 2.14.7", () => {
    for (const version of ["2.10.23", "2.10.27", "2.11.0", "2.14.6"]) {
      const { level, found } = checkVersion(version, false);
      expect(level, version).toBe("warn");
      expect(found).toMatch(/^nats-server \S+ compacts without the fsync [^;]*$/);
    }
    for (const version of ["2.14.7", "2.15.1"])
      expect(checkVersion(version, false).level, version).toBe("ok");
  });

  test("reports an old server as unsafe with more than one replica", async () => {
    const server = await serverWith({ binary: oldestNatsServer() });
    const run = await doctorAt(server, { PENSTOCK_REPLICAS: "3" });
    expect(expectOne(run, "version", "fail").found).toContain("disk of a node is lost");
    expect(expectOne(await doctorAt(server), "version", "warn").found).not.toContain(
      "disk of a node is lost",
    );
  }, 180_000);

  test("reports a wrong clock of the server", async () => {
    const server = await serverWith();
    await makeStreams(server);
    const relay = await relayTo(server, (text) =>
      text.replaceAll(/"ts":"(\d{4})/g, (_, year: string) => `"ts":"${Number(year) + 1}`),
    );
    expect(expectOne(await doctorAt(relay), "clock", "warn").found).toMatch(
      /nats-server's clock is \d+\.\d s ahead of this machine's/,
    );
    expectOne(await doctorAt(server), "clock", "ok");
  });

  test("reports a monitoring port of another service", async () => {
    const server = await serverWith({ extraConfig: monitoring });
    const elsewhere = `${monitorOf(server)}/elsewhere`;
    const run = await doctorAt(server, {}, { monitor: `http://127.0.0.1:1,${elsewhere}` });
    expect(run.of("sync_interval").map(({ level }) => level)).toEqual(["warn", "warn"]);
    expect(run.of("sync_interval")[1]?.found).toContain("responds with 404");
  });
});
