import { expect, test, vi } from "vitest";
import { frameOf } from "../../../src/gateway/publish/frame.ts";
import { managerOf } from "../../../src/platform/nats/api.ts";
import { partitionOf } from "../../../src/platform/nats/names.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { liveStream, type Rig, startRig } from "../../kit/publisher-rig.ts";
import { bodyOf, IntakeKit, until } from "./intake-kit.ts";

const server = await natsServerForFile();

async function muteFirst(rig: Rig): Promise<void> {
  const jsm = await managerOf(rig.link.connection, { timeoutMs: 5_000 });
  const { config } = await jsm.streams.info(liveStream(rig));
  await jsm.streams.delete(liveStream(rig));
  for (const subject of config.subjects)
    rig.link.connection.subscribe(subject, { callback: () => {} });
  await rig.link.connection.flush();
}

test("large bodies for a silent stream do not block other streams", async () => {
  let aheadMs = 0;
  const monotonicMs = (): number => performance.now() + aheadMs;
  const rig = await startRig(server, { settings: { partitions: 2 }, monotonicMs });
  await muteFirst(rig);
  const ids = Array.from({ length: 40 }, (_, index) => `p${index}`);
  const mute = ids.filter((id) => partitionOf(id, 2) === 0).slice(0, 3);
  const other = ids.find((id) => partitionOf(id, 2) === 1)!;
  const submit = vi.spyOn(rig.publisher, "submit");
  const placed = (): Set<string> =>
    new Set(submit.mock.calls.map(([frame]) => frameOf(frame).queue.subject));
  const kit = new IntakeKit({ publisher: rig.publisher, projects: [...mute, other] });
  kit.monotonicMs = monotonicMs;
  const large = { name: "large", events: 6_000, padding: 400 };
  const withinMs = 60_000;
  const deadlineMs = kit.monotonicMs() + withinMs;
  const stuck = [...mute, ...mute].map((project) =>
    kit.send({ ...large, project }, { deadlineMs }),
  );
  await until(() => rig.publisher.framesUnacked > 0);
  const sent = kit.send({ ...large, project: other });

  await until(() => [sent, ...stuck].some(({ answer }) => answer !== undefined));
  expect([sent, ...stuck].map(({ answer }) => answer)).toEqual([
    "stored 6000",
    ...stuck.map(() => undefined),
  ]);
  await until(() => placed().size >= 3);
  aheadMs = withinMs;
  await Promise.all(stuck.map(({ work }) => work));
  const answers = new Set(stuck.map(({ answer }) => answer));
  expect([...answers].sort()).toEqual(["overloaded", "timeout", "unavailable"]);
  await rig.close();
});

test("a large body continues where it stopped when its stream responds again", async () => {
  let scans = 0;
  let released = 0;
  const kit = new IntakeKit({
    createScanner(rows) {
      const scanner = createNativeScanner(rows);
      return {
        ...scanner,
        scanInBackground(body) {
          scans++;
          return scanner.scanInBackground(body);
        },
        finish() {
          released++;
          scanner.finish();
        },
      };
    },
  });
  kit.streamOf = (_, project) => (project === "d" ? "other" : "mute");
  const stalled = Promise.withResolvers<void>();
  const still = new Set<string>();
  kit.outcome = (project) => {
    const [name, index] = kit.placed.at(-1)!.split("-");
    if (project === "d" || Number(index) < 17_000) return "stored";
    still.add(name!);
    return stalled.promise;
  };
  const names = ["a", "b", "bb"];
  const stuck = names.map((name) => {
    const sent = kit.send({ name: `${name}-`, project: name[0]!, events: 30_000, padding: 150 });
    return { name, sent };
  });
  await until(() => still.size === names.length);
  const others = Array.from({ length: 4 }, () =>
    kit.send({ name: "other", project: "d", events: 5_000 }),
  );
  await Promise.all(others.map(({ work }) => work));
  expect(others.map(({ answer }) => answer)).toEqual(others.map(() => "stored 5000"));
  expect(scans).toBe(names.length + others.length);

  await until(() => released === names.length + others.length);
  stalled.resolve();
  await Promise.all(stuck.map(({ sent }) => sent.work));
  expect(scans).toBeGreaterThanOrEqual(2 * names.length + others.length);
  for (const { name, sent } of stuck) {
    expect(sent.answer).toBe("stored 30000");
    const placed = kit.placed.filter((event) => event.startsWith(`${name}-`));
    expect(placed).toEqual(Array.from({ length: 30_000 }, (_, index) => `${name}-${index}`));
  }
});

test("a large body that is not UTF-8 yields its scanner to other streams", async () => {
  const kit = new IntakeKit();
  kit.streamOf = (_, project) => (project === "d" ? "other" : "mute");
  const stalled = Promise.withResolvers<void>();
  const still = new Set<string>();
  kit.outcome = (project) => {
    if (project === "d") return "stored";
    still.add(kit.placed.at(-1)!.split("-")[0]!);
    return stalled.promise;
  };
  const names = ["a", "b", "bb"];
  const stuck = names.map((name) => {
    const body = bodyOf({ name: `${name}-`, project: name[0]!, events: 20_000 });
    for (const at of [body.indexOf("xxx"), body.lastIndexOf("xxx")]) body[at] = 0xff;
    return { name, sent: kit.send(body) };
  });
  await until(() => still.size === names.length);
  const other = kit.send({ name: "other", project: "d", events: 5_000 });
  await other.work;
  expect(other.answer).toBe("stored 5000");
  expect(stuck.map(({ sent }) => sent.answer)).toEqual(names.map(() => undefined));

  stalled.resolve();
  await Promise.all(stuck.map(({ sent }) => sent.work));
  for (const { name, sent } of stuck) {
    expect(sent.answer).toBe("stored 20000");
    const placed = kit.placed.filter((event) => event.startsWith(`${name}-`));
    expect(placed).toEqual(Array.from({ length: 20_000 }, (_, index) => `${name}-${index}`));
  }
});

test('a large body that waits past its deadline is answered "overloaded"', async () => {
  let finished = 0;
  const kit = new IntakeKit({
    createScanner(rows) {
      const scanner = createNativeScanner(rows);
      return {
        ...scanner,
        finish() {
          finished++;
          scanner.finish();
        },
      };
    },
  });
  const stalled = Promise.withResolvers<void>();
  kit.outcome = () => stalled.promise;
  const deadlineMs = kit.monotonicMs() + 30_000;
  const large = { name: "large", project: "a", events: 20_000 };
  const begun = kit.send(large, { deadlineMs });
  await until(() => finished > 0);
  kit.monotonicMs = () => deadlineMs;
  stalled.resolve();
  await begun.work;
  const fresh = kit.send(large, { deadlineMs });
  await fresh.work;
  expect([begun.answer, fresh.answer]).toEqual(["overloaded", "overloaded"]);
});
