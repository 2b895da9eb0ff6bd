import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();
const day = 86_400_000_000_000;

test("stream set changes the limits of one lane permanently", async () => {
  const { manager, stream, ensure } = await streamRig(server);
  const set = await stream(["set", "historical", "--max-age", "14d", "--max-bytes", "1048576"]);
  expect(set.fault).toBeUndefined();
  expect(set.out).toBe(
    "PENSTOCK_HISTORICAL_0: age 14d (set), 1.0 MiB (set); it had age 30d (settings), 64.0 MiB (settings)\n",
  );
  expect(set.audit).toMatchObject([
    { change: "stream set", stream: "PENSTOCK_HISTORICAL_0", result: "done" },
  ]);
  await ensure();
  const limits = async (name: string) => {
    const { config } = await manager.streams.info(name);
    return [config.max_age / day, config.max_bytes];
  };
  expect(await limits("PENSTOCK_HISTORICAL_0")).toEqual([14, 1_048_576]);
  expect(await limits("PENSTOCK_LIVE_0")).toEqual([7, 67_108_864]);
  const shown = JSON.parse((await stream(["show", "historical", "--json"])).out);
  expect(shown).toMatchObject([
    { stream: "PENSTOCK_HISTORICAL_0", set_by_command: ["max_age", "max_bytes"] },
  ]);
  const again = await stream(["set", "historical", "--max-age", "14d"]);
  expect(again.out).toContain("unchanged");
  expect(again.audit).toEqual([]);

  // Both sizes are shown as 1.0 MiB.
  await stream(["set", "historical", "--max-bytes", "1048577"]);
  expect(await limits("PENSTOCK_HISTORICAL_0")).toEqual([14, 1_048_577]);

  const back = await stream(["set", "historical", "--from-settings"]);
  expect(back.out).toContain("age 30d (settings), 64.0 MiB (settings); it had age 14d (set)");
  await manager.streams.update("PENSTOCK_HISTORICAL_0", { max_age: 14 * day });
  await ensure();
  expect(await limits("PENSTOCK_HISTORICAL_0")).toEqual([30, 67_108_864]);
});

test("stream set rejects a size below the stored messages", async () => {
  const { stream, js, manager } = await streamRig(server);
  for (let count = 0; count < 3; count++)
    await js.publish("penstock.live.0.shop", new Uint8Array(500_000));
  const { state } = await manager.streams.info("PENSTOCK_LIVE_0");
  const small = await stream(["set", "live", "--max-bytes", "1048576"]);
  expect(small.fault).toContain(`PENSTOCK_LIVE_0 holds ${state.bytes} bytes, more than 1048576`);
  expect((await stream(["set", "alive", "--max-bytes", "2000000"])).fault).toBe(
    "there is no stream alive: the lanes are live, historical, rejected; the streams are PENSTOCK_LIVE_0, PENSTOCK_HISTORICAL_0",
  );
  const { config } = await manager.streams.info("PENSTOCK_LIVE_0");
  expect(config.max_bytes).toBe(67_108_864);
});

test("stream set stores an age of more than 2^53 ns, which a gateway does not undo", async () => {
  const { stream, ensure, manager } = await streamRig(server);
  expect((await stream(["set", "live", "--max-age", "365d"])).fault).toBeUndefined();
  const shown = JSON.parse((await stream(["show", "live", "--json"])).out);
  expect(shown).toMatchObject([{ set_by_command: ["max_age"] }]);
  await manager.streams.update("PENSTOCK_LIVE_0", { max_age: 7 * day });
  await ensure();
  expect((await manager.streams.info("PENSTOCK_LIVE_0")).config.max_age / day).toBe(365);
});
