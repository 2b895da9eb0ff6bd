import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createConnection, createServer } from "node:net";
import path from "node:path";
import { nkeys } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { Streams } from "../../../src/gateway/streams/ensure.ts";
import type { NatsAccess } from "../../../src/platform/nats/access.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { NatsRefusedError } from "../../../src/platform/nats/sign-in.ts";
import { operatorMode } from "../../kit/nats-operator.ts";
import {
  startNatsServer,
  type TestNatsServer,
  type TestNatsServerOptions,
} from "../../kit/nats-server.ts";
import { refusalOf, tryToConnect } from "../../kit/nats-tls.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { recordingLog, streamSettings } from "../../kit/publisher-rig.ts";

const slow = { timeout: 30_000 };

async function serverWith(
  extraConfig: string,
  options: TestNatsServerOptions = { jetstream: false },
): Promise<TestNatsServer> {
  const server = await startNatsServer({ extraConfig, ...options });
  onTestFinished(() => server.remove());
  return server;
}

async function clusterWith(extraConfig: string): Promise<[TestNatsServer, TestNatsServer]> {
  const own = 'name: c, listen: "127.0.0.1:-1"';
  const first = await serverWith(`${extraConfig}\ncluster { ${own} }`);
  const second = await serverWith(
    `${extraConfig}\ncluster { ${own}, routes: ["nats://127.0.0.1:${routePort(first)}"] }`,
  );
  await expect.poll(() => first.log(), slow).toContain("Route connection created");
  return [first, second];
}

function routePort(server: TestNatsServer): string {
  return /Listening for route connections on \S+:(\d+)/.exec(server.log())?.[1] ?? "";
}

async function slowlyTo(port: number, lateMs: number): Promise<string> {
  const between = createServer((client) => {
    client.on("error", () => {});
    const timer = setTimeout(() => {
      const server = createConnection({ host: "127.0.0.1", port });
      server.on("error", () => client.destroy());
      client.pipe(server).pipe(client);
    }, lateMs);
    client.on("close", () => clearTimeout(timer));
  }).listen(0, "127.0.0.1");
  await once(between, "listening");
  onTestFinished(() => void between.close());
  return `nats://127.0.0.1:${(between.address() as AddressInfo).port}`;
}

async function refused(access: NatsAccess): Promise<NatsRefusedError> {
  const startedMs = performance.now();
  const refusal = await refusalOf(tryToConnect(access));
  expect(performance.now() - startedMs).toBeLessThan(1_500);
  return refusal;
}

describe("a gateway that NATS rejects at its start names the server and setting", () => {
  test("for a wrong or missing token in a cluster", async () => {
    const [first, second] = await clusterWith('authorization { token: "right" }');
    for (const natsUrl of [first.url, `${first.url},${second.url}`]) {
      const wrong = await refused({ natsUrl, natsToken: "wrong" });
      expect(wrong.message).toMatch(
        /^cannot connect to NATS at 127\.0\.0\.1:\d+: .*rejects the token/,
      );
      expect(wrong.fix).toBe("correct PENSTOCK_NATS_TOKEN");
      const none = await refused({ natsUrl });
      expect(none.message).toContain("requires credentials");
      expect(none.fix).toMatch(/PENSTOCK_NATS_TOKEN.*PENSTOCK_NATS_URL.*PENSTOCK_NATS_CREDS/);
    }
    const link = await tryToConnect({ natsUrl: first.url, natsToken: "right" }).link;
    expect(link.connected).toBe(true);
  });

  test("for a wrong password, foreign credentials or a bare nkey", async () => {
    const byUser = await serverWith('authorization { user: "ada", password: "right" }');
    const natsUrl = byUser.url.replace("//", "//ada:wrong@");
    expect(await refused({ natsUrl })).toMatchObject({
      reason: "the server rejects the user and password in the URL (Authorization Violation)",
      fix: "correct PENSTOCK_NATS_URL",
    });

    const [ours, other] = [await operatorMode(), await operatorMode()];
    const byOperator = await serverWith(ours.config);
    const natsCreds = path.join(temporaryFolder(), "user.creds");
    for (const [bytes, reason] of [
      [other.creds, /rejects the credentials \(Authorization Violation\)/],
      ["-----BEGIN NATS USER JWT-----\nhalf of a", /PENSTOCK_NATS_CREDS cannot be used/],
    ] as const) {
      writeFileSync(natsCreds, bytes);
      const found = await refused({ natsUrl: byOperator.url, natsCreds });
      expect(found.reason).toMatch(reason);
      expect(found.fix).toBe("correct PENSTOCK_NATS_CREDS");
    }
    const absent = { natsUrl: byOperator.url, natsCreds: "/absent.creds" };
    expect((await refused(absent)).reason).toContain("ENOENT");

    const key = nkeys.createUser().getPublicKey();
    const byKey = await serverWith(`authorization { users: [{ nkey: ${key} }] }`);
    expect((await refused({ natsUrl: byKey.url })).fix).toContain("a bare nkey is not supported");
  });

  test("for the port of cluster routes", async () => {
    const [server] = await clusterWith("");
    const { link } = tryToConnect({ natsUrl: `nats://127.0.0.1:${routePort(server)}` });
    await expect(link).rejects.toMatchObject({
      reason: expect.stringContaining("not a client port"),
      fix: expect.stringContaining("PENSTOCK_NATS_URL"),
    });
  });

  test("for an account without JetStream or a user without permission", async () => {
    const accounts = `accounts { A { users: [{ user: "ada", password: "p" }] } }`;
    const permissions = `permissions: { publish: ["shop.>"], subscribe: [">"] }`;
    const users = `authorization { users: [{ user: "ada", password: "p", ${permissions} }] }`;
    for (const [config, reason] of [
      [accounts, /^the account has no JetStream/],
      [users, /^the user lacks a permission .*\$JS\.API\.STREAM\.INFO/],
    ] as const) {
      const server = await serverWith(config, {});
      const natsUrl = server.url.replace("//", "//ada:p@");
      const { link, log } = tryToConnect({ natsUrl });
      const connected = await link;
      const settings = streamSettings();
      const streams = new Streams({ link: connected, settings, log: recordingLog(log) });
      const error = await streams.ensure().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(NatsRefusedError);
      expect(error).toMatchObject({ reason: expect.stringMatching(reason) });
      expect((error as NatsRefusedError).fix).toContain("PENSTOCK_NATS_URL");
    }
  });

  test("only if none of several servers accepts the gateway", async () => {
    const [refusing, accepting] = [
      await serverWith('authorization { token: "other" }'),
      await serverWith('authorization { token: "right" }'),
    ];
    const urls = [refusing.url, accepting.url].join(",");
    const link = await tryToConnect({ natsUrl: urls, natsToken: "right" }).link;
    expect(link.connected).toBe(true);
    const slowUrl = await slowlyTo(accepting.port, 700);
    const slowUrls = `${refusing.url},${slowUrl}`;
    const slowLink = await tryToConnect({ natsUrl: slowUrls, natsToken: "right" }).link;
    expect(slowLink.connected).toBe(true);
    const natsUrl = `nats://127.0.0.1:1,${refusing.url}`;
    expect((await refused({ natsUrl, natsToken: "right" })).server).toBe(
      `127.0.0.1:${refusing.port}`,
    );
  });
});

describe("a gateway at its start", () => {
  test("waits for a NATS server that has reached its connection limit", async () => {
    const server = await serverWith("max_connections: 1");
    const holder = await connect({ servers: server.url });
    const { link, log } = tryToConnect({ natsUrl: server.url });
    await expect.poll(() => log.join(), slow).toMatch(/waiting for NATS.*connection limit/);
    await holder.close();
    expect((await link).connected).toBe(true);
  });

  test("waits for a server that does not respond until the signal aborts", async () => {
    const kinds = [
      (socket: { write(text: string): void }) => socket.write("SSH-2.0-x\r\n"),
      () => {},
    ];
    for (const kind of kinds) {
      const other = createServer((socket) => {
        socket.on("error", () => {});
        kind(socket);
      }).listen(0, "127.0.0.1");
      await once(other, "listening");
      onTestFinished(() => void other.close());
      const log: string[] = [];
      const abort = new AbortController();
      const { port } = other.address() as AddressInfo;
      const access = { natsUrl: `nats://127.0.0.1:${port}` };
      const link = connectNats({ access, log: recordingLog(log), signal: abort.signal });
      link.catch(() => {});
      await expect
        .poll(() => log.join(), slow)
        .toMatch(/waiting for NATS.*(the response is not from a nats-server|handshake_first)/);
      const abortedMs = performance.now();
      abort.abort();
      await expect(link).rejects.toThrow(/abort/i);
      expect(performance.now() - abortedMs).toBeLessThan(500);
    }
  });
});

describe("a NATS server that rejects a running gateway", () => {
  test("does not end the gateway after a change of the token", async () => {
    const folder = temporaryFolder();
    const set = (token: string) =>
      writeFileSync(path.join(folder, "token.conf"), `authorization { token: "${token}" }\n`);
    set("right");
    const server = await serverWith(`include "../${path.basename(folder)}/token.conf"`);
    const { link, log } = tryToConnect({ natsUrl: server.url, natsToken: "right" });
    const connected = await link;
    const states: boolean[] = [];
    connected.onChange((isConnected) => states.push(isConnected));

    set("other");
    process.kill(server.pid, "SIGHUP");
    const attempts = () => server.log().split("authentication error").length - 1;
    await expect.poll(attempts, slow).toBeGreaterThan(2);
    expect(states).toEqual([false]);
    expect(log).toEqual([
      expect.stringMatching(
        /^NATS connection lost: the server rejects this process .*rejects the token.*_NATS_TOKEN/,
      ),
    ]);

    set("right");
    process.kill(server.pid, "SIGHUP");
    await expect.poll(() => connected.connected, slow).toBe(true);
    await expect
      .poll(() => log.slice(1), slow)
      .toEqual([expect.stringMatching(/^NATS connected again/)]);
    expect(states).toEqual([false, true]);
  });

  test("is retried with growing pauses until the connection is closed", async () => {
    const server = await serverWith('authorization { token: "right" }');
    const connected = await tryToConnect({ natsUrl: server.url, natsToken: "right" }).link;
    await server.restart({ extraConfig: 'authorization { token: "other" }' });
    const attempts = () => server.log().split("authentication error").length - 1;
    const times: number[] = [];
    await expect
      .poll(() => {
        while (times.length < attempts()) times.push(performance.now());
        return times.length;
      }, slow)
      .toBeGreaterThan(3);
    const gaps = times.slice(1).map((time, index) => time - times[index]!);
    expect(gaps.at(-1)).toBeGreaterThan(1_300);
    expect(connected.connected).toBe(false);
    const closingMs = performance.now();
    await connected.close();
    expect(performance.now() - closingMs).toBeLessThan(1_000);
  });
});
