import { connect, type NatsConnection } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { Watch } from "../../src/live/watch.ts";
import { startTestGateway, until } from "../kit/gateway.ts";
import { consumersOn, quietSources, watch } from "./live-kit.ts";

describe("the live page without viewers", () => {
  test("has no consumers", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const { id } = await gateway.project();
    expect(await consumersOn(gateway.nats)).toBe(0);
    const first = await watch(gateway.adminUrl);
    await until(async () => (await consumersOn(gateway.nats)) === 2);
    const second = await watch(gateway.adminUrl);
    const third = await watch(gateway.adminUrl, { path: `/live?project=${id}` });
    await until(async () => (await consumersOn(gateway.nats)) === 5);
    first.leave();
    third.leave();
    await until(async () => (await consumersOn(gateway.nats)) === 2);
    second.leave();
    await until(async () => (await consumersOn(gateway.nats)) === 0);

    const last = await watch(gateway.adminUrl);
    await until(async () => (await consumersOn(gateway.nats)) === 2);
    await gateway.close();
    await until(() => last.ended());
    expect(await consumersOn(gateway.nats)).toBe(0);
  });

  test("has no connection and computes no state", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const connections: NatsConnection[] = [];
    const sent: string[] = [];
    const viewer = {
      send: (name: string) => sent.push(name) > 0,
      push: () => {},
      isStuck: () => false,
      end: () => {},
    };
    function watchOf(onSnapshot: () => void): Watch {
      return new Watch({
        ...quietSources,
        counts: async () => {
          onSnapshot();
          return [];
        },
        async connect() {
          const connection = await connect({ servers: gateway.nats.url });
          connections.push(connection);
          return connection;
        },
      });
    }
    let snapshots = 0;
    const live = watchOf(() => snapshots++);
    expect([snapshots, connections.length]).toEqual([0, 0]);
    const leave = live.add(viewer, {});
    await until(() => snapshots >= 2 && sent.includes("state"));
    await until(async () => (await consumersOn(gateway.nats)) === 1);
    leave();
    leave();
    await until(
      () => connections.length === 1 && connections.every((connection) => connection.isClosed()),
    );
    expect(await consumersOn(gateway.nats)).toBe(0);
    const snapshotsThen = snapshots;
    let controlLooks = 0;
    const control = watchOf(() => controlLooks++);
    control.add(viewer, {});
    await until(() => controlLooks >= 3);
    expect(snapshots).toBe(snapshotsThen);
    await control.close();
    await live.close();
    expect(connections.every((connection) => connection.isClosed())).toBe(true);
  });
});
