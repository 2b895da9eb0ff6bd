import { describe, expect, test } from "vitest";
import { managerOf } from "../../../src/platform/nats/api.ts";
import { streamName } from "../../../src/platform/nats/names.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, requestWaiter, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const unknown = { outcome: "unknown", code: "timeout" };
const refused = { outcome: "refused", code: "unavailable" };

describe("requests in a shared frame", () => {
  test("become unknown at their own deadline", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 5_000 });
    server.freeze();
    const patient = [rig.send("live", "first"), rig.send("live", "third")];
    const hasty = rig.send("live", "second", { withinMs: 100 });
    const late = rig.send("live", "fourth", { withinMs: -1 });
    expect(await hasty).toEqual(unknown);
    expect(await late).toEqual(refused);
    server.thaw();
    expect(await Promise.all(patient)).toEqual([stored, stored]);
    expect(linesOf(await rig.stored("live"))).toEqual(["first", "third", "second"]);
    await rig.close();
  });

  test("are refused at their deadline if their frame was not sent", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 5_000 });
    const jetStream = await managerOf(rig.link.connection, { timeoutMs: 2_000 });
    await jetStream.streams.delete(streamName(rig.settings.subjectPrefix, "live", 0));
    server.freeze();
    const hasty = rig.send("live", "hasty-1", { withinMs: 200 });
    const late = rig.send("live", "late--2", { withinMs: 1_500 });
    const patient = rig.send("live", "patient");
    expect(await hasty).toEqual(unknown);
    server.thaw();
    expect(await late).toEqual({ outcome: "refused", code: "unavailable" });
    await rig.streams.ensure();
    expect(await patient).toEqual(stored);
    const [frame] = await rig.stored("live");
    expect(frame!.lines).toEqual(["hasty-1", "patient"]);
    expect(frame!.header("Penstock-Events")).toBe("2");
    await rig.close();
  });

  test.each(["live", "historical"] as const)(
    "are refused if they arrive after their deadline (%s)",
    async (lane) => {
      const rig = await startRig(server);
      const late = { withinMs: 0 };
      expect(await rig.send(lane, "alone", late)).toEqual(refused);
      expect(await rig.sendOwn(lane, ["own"], { messageId: "late", ...late })).toEqual(refused);
      const outcomes = ["a", "b", "c"].map((line) =>
        rig.send(lane, line, line === "b" ? late : {}),
      );
      expect(await Promise.all(outcomes)).toEqual([stored, refused, stored]);
      expect(linesOf(await rig.stored(lane))).toEqual(["a", "c"]);
      await rig.publisher.drain(performance.now() + 1_000);
      expect(rig.admission.bytes).toBe(0);
      await rig.close();
    },
  );

  test.each(["open", "sealed"] as const)(
    "are removed from an %s frame at their deadline",
    async (kind) => {
      const rig = await startRig(server, { ackTimeoutMs: 5_000 });
      server.freeze();
      const sent = rig.send("live", "sent");
      await nextTurn();
      const padding = kind === "sealed" ? 200_000 : 1;
      const line = (name: string): string => name + "x".repeat(padding);
      const names = ["a", "b", "c", "d", "e"];
      const outcomes = names.map((name) => {
        const isHasty = name === "a" || name === "c" || name === "d";
        return rig.send("live", line(name), { withinMs: isHasty ? 150 : 10_000 });
      });
      expect(await outcomes[0]).toEqual(refused);
      expect(await outcomes[2]).toEqual(refused);
      expect(await outcomes[3]).toEqual(refused);
      server.thaw();
      expect(await Promise.all([sent, outcomes[1], outcomes[4]])).toEqual([stored, stored, stored]);
      const frames = await rig.stored("live");
      expect(linesOf(frames)).toEqual(["sent", line("b"), line("e")]);
      for (const frame of frames)
        expect(frame.header("Penstock-Events")).toBe(String(frame.lines.length));
      await rig.close();
    },
  );

  test("are removed at their deadline without changing the order of history", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 300 });
    server.freeze();
    const sent = rig.send("historical", "0");
    await nextTurn();
    const hasty = rig.send("historical", "1", { withinMs: 100 });
    const patient = ["2", "3"].map((line) => rig.send("historical", line));
    expect(await hasty).toEqual(refused);
    server.thaw();
    expect(await Promise.all([sent, ...patient])).toEqual([stored, stored, stored]);
    const after = ["4", "5"].map((line) => rig.send("historical", line));
    expect(await Promise.all(after)).toEqual([stored, stored]);
    expect(linesOf(await rig.stored("historical"))).toEqual(["0", "2", "3", "4", "5"]);
    await rig.close();
  });

  test("each get the byte range of their own events", async () => {
    const rig = await startRig(server);
    const heard: [number, number][] = [];
    const settled = ["a", "bb\nbb", "ccc"].map(
      (text) =>
        new Promise<void>((resolve) => {
          const line = `${text}\n`;
          const sink = rig.publisher.sharedFrame(
            "live",
            { id: "alpha", name: "", keys: [], enabled: true },
            line.length,
          );
          const end = sink.length + sink.buffer.write(line, sink.length);
          sink.commit(end, line.split("\n").length - 1);
          const frameSettled = (
            _outcome: string,
            _code: unknown,
            events: number,
            bytes: number,
          ): void => {
            heard.push([events, bytes]);
            resolve();
          };
          rig.publisher.join(sink, requestWaiter(frameSettled), performance.now() + 5_000);
        }),
    );
    await Promise.all(settled);
    expect(heard).toEqual([
      [1, 2],
      [2, 6],
      [1, 4],
    ]);
    await rig.close();
  });
});
