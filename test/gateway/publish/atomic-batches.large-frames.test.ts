import { afterEach, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  linesOf,
  mebibyte,
  nextTurn,
  type Rig,
  startRig,
  stored,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ maxFileStore: 8_192 * mebibyte });
afterEach(() => server.thaw());

const large = "l".repeat(100_000);
const window = 8;

function startNarrow(): Promise<Rig> {
  const settings = { streamBytesMax: 128 * mebibyte };
  return startRig(server, { framesUnackedMax: window, settings });
}

async function sendFrozen(rig: Rig, lines: readonly string[]): Promise<number> {
  server.freeze();
  const sends = lines.map((line, at) => rig.send("live", line, { project: `p${at}` }));
  await nextTurn();
  const left = rig.publisher.framesUnacked;
  server.thaw();
  expect(await Promise.all(sends)).toEqual(lines.map(() => stored));
  expect(linesOf(await rig.stored("live")).toSorted()).toEqual([...lines].toSorted());
  return left;
}

test("large frames are not batched", async () => {
  const rig = await startNarrow();
  const lines = Array.from({ length: 100 }, () => large);
  expect(await sendFrozen(rig, lines)).toBe(window);
  expect(rig.heard.batches).toEqual([]);
  await rig.close();
});

test("a few small frames among large frames are sent one by one", async () => {
  const rig = await startNarrow();
  const lines = Array.from({ length: 40 }, (_, at) => (at % 3 === 0 ? `line ${at}` : large));
  expect(await sendFrozen(rig, lines)).toBe(window);
  await rig.close();
});

test("a batch of small frames is sent alongside large frames", async () => {
  const rig = await startNarrow();
  const lines = Array.from({ length: 50 }, (_, at) =>
    at >= 7 && at < 27 ? `line ${at}` : `${at} ${large}`,
  );
  expect(await sendFrozen(rig, lines)).toBe(20 + window);
  expect(rig.heard.batches).toEqual([["stored", 20]]);
  await rig.close();
});

test("frames of more than 1 MiB in total are split into several batches", async () => {
  const rig = await startRig(server);
  const lines = Array.from({ length: 80 }, (_, at) => `${at} `.padEnd(32_700, "x"));
  const sends = lines.map((line, at) => rig.send("live", line, { project: `p${at}` }));
  expect(await Promise.all(sends)).toEqual(lines.map(() => stored));
  expect(rig.heard.batches).toEqual([
    ["stored", 32],
    ["stored", 32],
    ["stored", 16],
  ]);
  await rig.close();
});

test("a large frame does not overtake an earlier batched frame of its project", async () => {
  const rig = await startRig(server, { settings: { frameBytesMax: 65_536 } });
  server.freeze();
  // While a bulk frame is in flight, a project may have two live frames in flight.
  const bulk = rig.sendOwn("live", ["b".repeat(40_000)], { messageId: "bulk", project: "other" });
  await nextTurn();
  const ids = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const small = ids.map((project) => rig.send("live", `1 ${project}`, { project }));
  const second = rig.send("live", `2 ${"x".repeat(65_533)}`, { project: "p3" });
  await nextTurn();
  expect(rig.publisher.framesUnacked).toBe(1 + 30 + 1);
  server.thaw();
  expect(await Promise.all([bulk, ...small, second])).toEqual(Array(32).fill(stored));
  const own = (await rig.stored("live")).filter(({ subject }) => subject.endsWith(".p3"));
  expect(linesOf(own).map((line) => line[0])).toEqual(["1", "2"]);
  expect(rig.heard.batches).toEqual([["stored", 30]]);
  await rig.close();
});
