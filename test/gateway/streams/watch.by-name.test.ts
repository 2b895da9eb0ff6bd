import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { kill } from "node:process";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { StreamWatch } from "../../../src/gateway/streams/watch.ts";
import { alteredStreamInfo } from "../../kit/altered-stream-info.ts";
import {
  startNatsServer,
  type TestNatsServer,
  type TestNatsServerOptions,
} from "../../kit/nats-server.ts";
import { type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const within = { timeout: 30_000, interval: 5 };

async function startWith(
  prefix: string,
  extraConfig: string,
  { ackTimeoutMs = 2_000, ...more }: TestNatsServerOptions & { ackTimeoutMs?: number } = {},
): Promise<{ rig: Rig; server: TestNatsServer }> {
  const server = await startNatsServer({ extraConfig, ...more });
  onTestFinished(() => server.remove());
  const rig = await startRig(server, { settings: { subjectPrefix: prefix }, ackTimeoutMs });
  onTestFinished(() => rig.close());
  return { rig, server };
}

function denied(...subjects: string[]): string {
  const deny = subjects.map((subject) => JSON.stringify(subject)).join(", ");
  const user = `{ user: gateway, password: secret, permissions { publish { deny: [${deny}] } } }`;
  return `no_auth_user: gateway\nauthorization { users: [ ${user} ] }`;
}

describe("the check of the streams", () => {
  test("needs no permission to list streams", async () => {
    const { rig } = await startWith(
      "listless",
      denied("$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES"),
    );
    expect(await rig.streams.check()).toEqual([]);
  });

  test("names the stream that does not answer", async () => {
    const { rig, server } = await startWith("mute", denied("nothing"));
    const file = path.join(path.dirname(server.storeDir), "nats.conf");
    const api = "$JS.API.STREAM.INFO.MUTE_HISTORICAL_0";
    writeFileSync(
      file,
      readFileSync(file, "utf8").replace('"nothing"', () => JSON.stringify(api)),
    );
    kill(server.pid, "SIGHUP");
    await vi.waitFor(
      async () =>
        expect(await rig.streams.check()).toEqual([
          expect.stringMatching(/^stream MUTE_HISTORICAL_0 does not/),
        ]),
      { timeout: 30_000 },
    );
    expect(await rig.send("live", "one")).toEqual(stored);
  });

  test("names a stream that acknowledges no frame", async () => {
    // A write error of nats-server 2.14: published messages disappear, and no acknowledgement
    // arrives.
    const { rig } = await startWith(
      "silent",
      'mappings = { "silent.live.0.*": "elsewhere.{{wildcard(1)}}" }',
      {
        ackTimeoutMs: 100,
      },
    );
    rig.link.connection.subscribe("elsewhere.*", { callback: () => {} });
    expect(await rig.send("live", "one", { withinMs: 200 })).toEqual({
      outcome: "unknown",
      code: "timeout",
    });
    expect(await rig.streams.check()).toEqual([
      expect.stringMatching(
        /^stream SILENT_LIVE_0 answers requests but acknowledges nothing: .*free some space on its disk.* restart an external nats-server yourself$/,
      ),
    ]);
    expect(await rig.send("historical", "old")).toEqual(stored);
  });

  describe("while a stream answers requests but acknowledges no frame", () => {
    const within = { timeout: 30_000, interval: 20 };
    const mapping =
      'mappings = { "dumb.live.0.*": "elsewhere.{{wildcard(1)}}", "back.*": "dumb.live.0.{{wildcard(1)}}" }';
    let server: TestNatsServer;
    let rig: Rig;
    let isBack: boolean;

    beforeEach(async () => {
      server = await startNatsServer({ extraConfig: mapping });
      rig = await startRig(server, {
        settings: { subjectPrefix: "dumb" },
        watchEveryMs: 20,
        ackTimeoutMs: 100,
      });
      isBack = false;
      const { connection } = rig.link;
      connection.subscribe("elsewhere.*", {
        callback: (_error, { subject, data, headers, reply = "" }) => {
          const on = subject.replace("elsewhere", "back");
          if (isBack)
            connection.publish(on, data, headers === undefined ? { reply } : { headers, reply });
        },
      });
      expect((await rig.send("live", "one", { withinMs: 200 })).outcome).toBe("unknown");
      await vi.waitFor(() => expect(rig.streams.unfit()).toBe(1), within);
    });
    afterEach(async () => {
      await rig.close();
      await server.remove();
    });

    const refusal = (): unknown => rig.publisher.refusalOf("live", "alpha");
    const logged = (words: string): string[] => rig.log.filter((line) => line.includes(words));

    test("events for that stream are refused", async () => {
      expect(refusal()).toEqual({
        code: "unavailable",
        detail: expect.stringMatching(
          /^Stream DUMB_LIVE_0 answers requests but acknowledges nothing: .*free some space on its disk.* restart an external nats-server yourself$/,
        ),
      });
      expect(rig.publisher.refusalOf("historical", "alpha")).toBeUndefined();
      expect(await rig.send("historical", "old")).toEqual(stored);
      expect((await rig.send("live", "two", { withinMs: 200 })).outcome).toBe("refused");
      await rig.streams.check();
      expect(logged("restart an external nats-server")).toHaveLength(1);
    });

    test("one request at a time is admitted as a probe", async () => {
      await vi.waitFor(() => expect(refusal()).toBeUndefined(), within);
      isBack = true;
      const probe = rig.send("live", "three");
      expect(refusal()).toBeDefined();
      expect(await probe).toEqual(stored);
      expect(refusal()).toBeUndefined();
      expect(rig.streams.unfit()).toBe(0);
      await vi.waitFor(() => expect(logged("acknowledges again")).toHaveLength(1), within);
      expect(await rig.streams.check()).toEqual([]);
    });

    test("a reconnect triggers a new attempt", async () => {
      await rig.link.connection.reconnect();
      await vi.waitFor(() => expect(rig.streams.unfit()).toBe(0), within);
      expect([refusal(), refusal()]).toEqual([undefined, undefined]);
    });
  });

  describe("the advice for a stream without acknowledgements", () => {
    const seconds = 1_000_000_000;
    const current = { name: "b", current: true, active: seconds / 2 };
    const behind = { name: "b", current: false, active: seconds / 2, lag: 9 };
    const unheard = { name: "c", current: true, active: 4 * seconds };
    const offline = { name: "c", current: true, offline: true, active: seconds / 2 };
    const neverHeard = { name: "c", current: false, active: 0 };

    test.each([
      [[current, unheard], /restart an external nats-server yourself$/],
      [[behind, offline], /restart an external nats-server yourself$/],
      [[unheard, unheard], /has no quorum/],
      [[offline, unheard], /has no quorum/],
      [[neverHeard, neverHeard], /has no quorum/],
      [[unheard], /has no quorum/],
    ])("depends on the state of its replicas: %j", async (replicas, words) => {
      const server = await startNatsServer();
      onTestFinished(() => server.remove());
      const rig = await startRig(server);
      onTestFinished(() => rig.close());
      const { link, settings, log } = rig;
      const streams = rig.streams.states;
      streams.of("live", 0).silentMonotonicMs = performance.now();
      const connection = withReplicas(link.connection, replicas);
      const { connected, messageBytesMax } = link;
      const onChange: typeof link.onChange = (listener) => link.onChange(listener);
      const quiet = {
        info() {},
        warn() {},
        error: (_fields: object, message: string) => void log.push(message),
      };
      const watch = new StreamWatch({
        link: {
          connection,
          connected,
          messageBytesMax,
          onChange,
          onDenied() {},
          tryAnotherServer: () => false,
        },
        settings,
        streams,
        metrics: { streamRegressed() {} },
        log: quiet,
        monotonicMs: () => performance.now(),
        everyMs: 3_600_000,
      });
      onTestFinished(() => watch.close());
      expect(await watch.check()).toEqual([expect.stringMatching(words)]);
      expect(rig.publisher.refusalOf("live", "alpha")).toEqual({
        code: "unavailable",
        detail: expect.stringMatching(words),
      });
      expect(
        log.filter((line) => words.test(line.replace(": the gateway rejects its events", ""))),
      ).toHaveLength(1);
    });
  });

  test("ignores a member's answer if the stream has no leader", async () => {
    const { rig } = await startWith("leaderless", "");
    const { link, settings } = rig;
    expect(await rig.send("live", "one")).toEqual(stored);
    const { connected, messageBytesMax } = link;
    const onChange: typeof link.onChange = (listener) => link.onChange(listener);
    const connection = alteredStreamInfo(link.connection, ({ state, config }) => ({
      cluster: { name: "c", replicas: [{ name: "b", current: false, active: 0 }] },
      state: { ...state, last_seq: 0 },
      config: { ...config, discard: "old" },
    }));
    const regression: string[] = [];
    const watch = new StreamWatch({
      link: {
        connection,
        connected,
        messageBytesMax,
        onChange,
        onDenied() {},
        tryAnotherServer: () => false,
      },
      settings,
      streams: rig.streams.states,
      metrics: { streamRegressed: (lane) => void regression.push(lane) },
      log: { info() {}, warn() {}, error() {} },
      monotonicMs: () => performance.now(),
      everyMs: 3_600_000,
    });
    onTestFinished(() => watch.close());
    for (let times = 0; times < 5; times++) {
      expect(await watch.check()).toEqual([
        "stream LEADERLESS_LIVE_0 has no leader",
        "stream LEADERLESS_HISTORICAL_0 has no leader",
      ]);
    }
    expect(regression).toEqual([]);
    expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined();
  });

  test("switches the server if it reaches no stream", async () => {
    const { rig } = await startWith("stuck", "");
    const { link, settings } = rig;
    const { connected, messageBytesMax } = link;
    const onChange: typeof link.onChange = (listener) => link.onChange(listener);
    let nowMs = 0;
    let asked = 0;
    let leader: string | undefined;
    const connection = alteredStreamInfo(link.connection, () => {
      asked++;
      return {
        cluster: { name: "c", leader, replicas: [{ name: "b", current: true, active: 1 }] },
      };
    });
    const tries: number[] = [];
    const watch = new StreamWatch({
      link: {
        connection,
        connected,
        messageBytesMax,
        onChange,
        onDenied() {},
        tryAnotherServer() {
          tries.push(nowMs);
          return true;
        },
      },
      settings,
      streams: rig.streams.states,
      metrics: { streamRegressed() {} },
      log: { info() {}, warn() {}, error() {} },
      monotonicMs: () => nowMs,
      everyMs: 1,
    });
    onTestFinished(() => watch.close());
    const to = async (ms: number): Promise<void> => {
      nowMs = ms;
      const before = asked;
      await vi.waitFor(() => expect(asked).toBeGreaterThan(before + 4), within);
    };
    for (const ms of [10_000, 14_900, 15_000, 24_900, 25_100]) await to(ms);
    expect(tries.map((ms) => Math.floor(ms / 1_000))).toEqual([15, 25]);
    leader = "a";
    for (const ms of [25_200, 100_000, 200_000]) await to(ms);
    leader = undefined;
    for (const ms of [200_001, 204_900, 205_100]) await to(ms);
    expect(tries.map((ms) => Math.floor(ms / 1_000))).toEqual([15, 25, 205]);
  });

  test("treats another domain's acknowledgement like another stream's", async () => {
    const config =
      'listen: "127.0.0.1:$PORT"\njetstream { store_dir: $NATS_STORE, domain: leaf, max_file_store: 1GB }\n';
    const { rig } = await startWith("domains", "", { config });
    expect(await rig.streams.check()).toEqual([]);
    expect(rig.streams.states.of("live", 0).domain).toBe("leaf");
    expect(await rig.send("live", "one")).toEqual(stored);
    await (await jetstreamManager(rig.link.connection)).streams.delete("DOMAINS_LIVE_0");
    rig.link.connection.subscribe("domains.live.>", {
      callback: (_error, message) =>
        void message.respond('{"stream":"DOMAINS_LIVE_0","domain":"hub","seq":9}'),
    });
    expect((await rig.send("live", "two", { withinMs: 200 })).outcome).toBe("unknown");
    expect(rig.heard.failures).toContain("foreign");
  });
});

function withReplicas(connection: NatsConnection, replicas: readonly object[]): NatsConnection {
  return alteredStreamInfo(connection, () => ({ cluster: { name: "c", leader: "a", replicas } }));
}
