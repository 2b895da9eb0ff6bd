import { errors, type Msg } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  changeOwnLimits,
  type OwnLimits,
  readOwnLimits,
} from "../../../src/gateway/streams/own-limits.ts";
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

/** Replaces the response to the first update of the stream's configuration. */
function atFirstUpdate(answer: (send: () => Promise<Msg>) => Promise<Msg>): void {
  const { request } = NatsConnectionImpl.prototype;
  let isFirst = true;
  const spy = vi.spyOn(NatsConnectionImpl.prototype, "request").mockImplementation(async function (
    this: NatsConnectionImpl,
    subject,
    ...more
  ) {
    const send = () => request.call(this, subject, ...more);
    if (!isFirst || !subject.endsWith("STREAM.UPDATE.PENSTOCK_LIVE_0")) return await send();
    isFirst = false;
    return await answer(send);
  });
  onTestFinished(() => spy.mockRestore());
}

test("stream set reports limits that JetStream has applied without a response as set", async () => {
  const { stream, manager } = await streamRig(server);
  atFirstUpdate(async (send) => {
    await send();
    throw new errors.TimeoutError();
  });
  const set = await stream(["set", "live", "--max-age", "2d"]);
  expect([set.fault, set.out]).toEqual([undefined, expect.stringContaining("age 2d (set)")]);
  expect(set.audit).toMatchObject([{ result: "done" }]);
  expect((await manager.streams.info("PENSTOCK_LIVE_0")).config.max_age / day).toBe(2);
});

test("stream set retains the limits if it is unknown whether JetStream applies them", async () => {
  const { stream, ensure, manager } = await streamRig(server);
  atFirstUpdate(() => Promise.reject(new errors.TimeoutError()));
  const { fault } = await stream(["set", "live", "--max-age", "2d"]);
  expect(fault).toContain(
    "stream set: NATS did not confirm the new limits of PENSTOCK_LIVE_0: timeout; it now has age 7d, 64.0 MiB, which may still change. They are stored",
  );
  await ensure();
  expect((await manager.streams.info("PENSTOCK_LIVE_0")).config.max_age / day).toBe(2);
});

test("stream set stores nothing if JetStream rejects the limits", async () => {
  const { stream } = await streamRig(server);
  await stream(["set", "live", "--max-bytes", "2000000"]);
  const { fault } = await stream([
    "set",
    "live",
    "--max-age",
    "2d",
    "--max-bytes",
    "9000000000000000",
  ]);
  expect(fault).toContain("PENSTOCK_LIVE_0 rejected the limits: ");
  const shown = JSON.parse((await stream(["show", "live", "--json"])).out);
  expect(shown).toMatchObject([{ set_by_command: ["max_bytes"], bytes_max: 2_000_000 }]);
});

test.each([
  ["another limit", ["--max-bytes", "2000000"], [2 * day, 2_000_000], ["max_age", "max_bytes"]],
  ["the same limit", ["--max-age", "3d"], [3 * day, 67_108_864], ["max_age"]],
  ["the limits of the settings", ["--from-settings"], [7 * day, 67_108_864], []],
])("stream set does not undo %s that a concurrent command sets", async (_, other, limits, own) => {
  const { stream, manager } = await streamRig(server);
  const faults: (string | undefined)[] = [];
  atFirstUpdate(async (send) => {
    faults.push((await stream(["set", "live", ...other])).fault);
    return await send();
  });
  faults.push((await stream(["set", "live", "--max-age", "2d"])).fault);
  expect(faults).toEqual([undefined, undefined]);
  const { config } = await manager.streams.info("PENSTOCK_LIVE_0");
  expect([config.max_age, config.max_bytes]).toEqual(limits);
  const shown = JSON.parse((await stream(["show", "live", "--json"])).out);
  expect(shown).toMatchObject([{ set_by_command: own }]);
});

test("concurrent changes of the stored limits of a stream all stay", async () => {
  const { connection, manager } = await streamRig(server);
  const which = { prefix: "penstock", stream: "PENSTOCK_LIVE_0" };
  const set = (limits: OwnLimits) =>
    changeOwnLimits(connection, manager, {
      ...which,
      replicas: 1,
      change: (now) => ({ ...now, ...limits }),
    });
  await set({});
  await Promise.all([set({ max_age: 2 * day }), set({ max_bytes: 2_000_000 })]);
  expect(await readOwnLimits(manager, which)).toEqual({ max_age: 2 * day, max_bytes: 2_000_000 });
});
