import { describe, expect, test, vi } from "vitest";
import { partitionOf } from "../../../src/platform/nats/names.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const projects = ["alpha", "beta", "gamma", "delta"];

describe("with frames per partition", () => {
  test("live events of all projects share one frame", async () => {
    const rig = await startRig(server, { frameScope: "partition" });
    const outcomes = await Promise.all([
      ...projects.map((project) => rig.send("live", `live ${project}`, { project })),
      ...projects.map((project) => rig.send("historical", `old ${project}`, { project })),
      rig.sendOwn("live", ["own beta"], { messageId: "own-1", project: "beta" }),
      rig.sendOwn("historical", ["old own beta"], { messageId: "own-2", project: "beta" }),
    ]);
    expect(outcomes).toEqual(Array.from({ length: 10 }, () => stored));

    const { subjectPrefix } = rig.settings;
    const live = await rig.stored("live");
    // No frame of a large request was in flight, so the waiting large frame was sent first.
    expect(live.map(({ subject, lines }) => [subject, lines])).toEqual([
      [`${subjectPrefix}.live.0.beta`, ["own beta"]],
      [`${subjectPrefix}.live.0.~`, projects.map((project) => `live ${project}`)],
    ]);
    expect(live[1]?.header("Penstock-Events")).toBe("4");
    expect(live[1]?.messageId).toMatch(/^process\d{6}-[0-9a-z]+$/);
    const historical = (await rig.stored("historical")).map(({ subject, lines }) => [
      subject,
      lines,
    ]);
    expect(historical.toSorted()).toEqual([
      [`${subjectPrefix}.historical.0.alpha`, ["old alpha"]],
      [`${subjectPrefix}.historical.0.beta`, ["old beta"]],
      [`${subjectPrefix}.historical.0.beta`, ["old own beta"]],
      [`${subjectPrefix}.historical.0.delta`, ["old delta"]],
      [`${subjectPrefix}.historical.0.gamma`, ["old gamma"]],
    ]);
    await rig.close();
  });

  test("each partition has its own frames", async () => {
    const rig = await startRig(server, { frameScope: "partition", settings: { partitions: 3 } });
    const many = Array.from({ length: 30 }, (_, number) => `project-${number}`);
    const outcomes = await Promise.all(
      many.map((project) => rig.send("live", project, { project })),
    );
    expect(outcomes).toEqual(many.map(() => stored));
    for (const partition of [0, 1, 2]) {
      const frames = await rig.stored("live", partition);
      expect(frames.map(({ subject }) => subject)).toEqual([
        `${rig.settings.subjectPrefix}.live.${partition}.~`,
      ]);
      expect(linesOf(frames)).toEqual(
        many.filter((project) => partitionOf(project, 3) === partition),
      );
    }
    await rig.close();
  });

  test("events wait while the partition's frame is unacknowledged", async () => {
    const rig = await startRig(server, { frameScope: "partition", ackTimeoutMs: 150 });
    server.freeze();
    const sends: Promise<Settled>[] = [];
    const expected: string[] = [];
    for (let number = 0; number < 60; number++) {
      const line = `${number}`;
      expected.push(line);
      sends.push(rig.send("live", line, { project: projects[number % projects.length]! }));
      if (number % 5 === 0) await nextTurn();
    }
    expect(rig.publisher.framesUnacked).toBe(1);
    await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThan(0), 5_000);
    await server.restart();
    for (const { outcome } of await Promise.all(sends))
      expect(outcome).toMatch(/^(stored|duplicate)$/);
    const frames = await rig.stored("live");
    expect(linesOf(frames)).toEqual(expected);
    expect(frames).toHaveLength(2);
    await rig.close();
  });

  test("an event past its deadline is refused", async () => {
    const rig = await startRig(server, { frameScope: "partition" });
    server.freeze();
    const sent = rig.send("live", "sent", { project: "alpha", withinMs: 2_000 });
    await nextTurn();
    const waiting = rig.send("live", "waiting", { project: "beta", withinMs: 200 });
    expect(await waiting).toEqual({ outcome: "refused", code: "unavailable" });
    expect(await sent).toEqual({ outcome: "unknown", code: "timeout" });
    expect(rig.admission.bytes).toBe("sent\n".length);
    server.thaw();
    expect(await rig.send("live", "after", { project: "gamma" })).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).not.toContain("waiting");
    await rig.close();
  });
});
