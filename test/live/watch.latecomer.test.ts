import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Viewer } from "../../src/live/feed.ts";
import { Watch } from "../../src/live/watch.ts";
import type { ClientWarning } from "../../src/platform/base/client-warning.ts";
import { startTestGateway, until } from "../kit/gateway.ts";
import { consumersOn, quietSources, watch } from "./live-kit.ts";

const origin = { projectId: "shop", path: "/e/", client: "curl 8" };
const warning: ClientWarning = {
  atMs: 0,
  ...origin,
  times: 1,
  status: 400,
  code: "invalid_json",
  detail: "",
  events: 0,
};
const sources = { ...quietSources, clientWarnings: async () => [warning] };

interface TestViewer extends Viewer {
  readonly sent: string[];
  readonly events: string[];
  hasRoom: boolean;
}

function viewerOf(): TestViewer {
  const viewer: TestViewer = {
    sent: [],
    events: [],
    hasRoom: true,
    send(name) {
      if (viewer.hasRoom) viewer.sent.push(name);
      return viewer.hasRoom;
    },
    push: (batch) => void viewer.events.push(...batch.events.map(({ event }) => event)),
    isStuck: () => false,
    end: () => {},
  };
  return viewer;
}

const warningsTo = ({ sent }: TestViewer): number =>
  sent.filter((name) => name === "clientWarnings").length;

describe("a viewer who joins later", () => {
  test("gets each warning once", async () => {
    const watch = new Watch({
      ...sources,
      showsEvents: false,
      connect: () => Promise.reject(new Error("none")),
    });
    onTestFinished(() => watch.close());
    const [first, other, slow] = [viewerOf(), viewerOf(), viewerOf()];
    watch.add(first, {});
    const leave = watch.add(other, {});
    await until(() => warningsTo(first) === 1 && warningsTo(other) === 1);
    // One viewer leaves and returns between two snapshots, so the number of viewers is unchanged.
    leave();
    const again = viewerOf();
    watch.add(again, {});
    slow.hasRoom = false;
    watch.add(slow, {});
    await until(() => warningsTo(again) === 1);
    slow.hasRoom = true;
    await until(() => warningsTo(slow) === 1);
    expect([first, other, again, slow].map(warningsTo)).toEqual([1, 1, 1, 1]);
  });

  test("gets the events that wait for the next push", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const { key } = await gateway.project();
    let onTake = (): void => {};
    const watch = new Watch({
      ...sources,
      connect: () => connect({ servers: gateway.nats.url }),
      monotonicMs() {
        // The feed reads the time when it receives an event. After that, the event waits.
        queueMicrotask(() => onTake());
        return performance.now();
      },
    });
    onTestFinished(() => watch.close());
    const [first, later] = [viewerOf(), viewerOf()];
    watch.add(first, {});
    await until(async () => (await consumersOn(gateway.nats)) === 1);
    let isAdded = false;
    onTake = () => {
      if (isAdded) return;
      isAdded = true;
      expect(first.events).toEqual([]);
      watch.add(later, {});
    };
    const send = (event: string) =>
      gateway.post("/capture/", { api_key: key, event, distinct_id: "u" });
    expect((await send("one")).status).toBe(200);
    await until(() => first.events.length === 1);
    expect((await send("two")).status).toBe(200);
    await until(() => first.events.includes("two") && later.events.includes("two"));
    expect([first.events, later.events]).toEqual([
      ["one", "two"],
      ["one", "two"],
    ]);
  });

  test("does not prevent a close while the server is frozen", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const watch = new Watch({ ...sources, connect: () => connect({ servers: gateway.nats.url }) });
    watch.add(viewerOf(), {});
    await until(async () => (await consumersOn(gateway.nats)) === 1);
    gateway.nats.freeze();
    const startMs = performance.now();
    await watch.close();
    const tookMs = performance.now() - startMs;
    gateway.nats.thaw();
    // The client's timeout for an answer is ten times as long.
    expect(tookMs).toBeLessThan(3_500);
  });
});

test("a new viewer gets the projects and the last minute's counts", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const { id, key } = await gateway.project();
  await gateway.post("/capture/", { api_key: key, event: "e", distinct_id: "u" });
  const historyOf = async () => {
    const viewer = await watch(gateway.adminUrl);
    await until(() => viewer.said("history").length > 0);
    await until(() => viewer.said<string[]>("projects").at(-1)?.includes(id) === true);
    viewer.leave();
    return viewer.said<{ atMs: number; counts: { events: unknown[] } }[]>("history")[0]!;
  };
  await expect
    .poll(async () => (await historyOf()).at(-1)?.counts.events)
    .toEqual([{ outcome: "stored", reason: "none", count: 1 }]);
});
