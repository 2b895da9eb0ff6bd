import { Buffer } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";
import { DailySalts, removeSalts } from "../../../../src/gateway/projects/rules/daily-salts.ts";
import { dayMs } from "../../../../src/platform/base/day.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const day = 20_000;
const morningMs = day * dayMs + 11 * 3_600_000;
const hourMs = 3_600_000;

/** `clock` is that of nats-server, and `errorMs` the difference of the gateway's clock. */
function saltsAt(place: ReturnType<typeof newPlace>, clock: { nowMs: number }, errorMs = 0) {
  const warnings: string[] = [];
  const salts = new DailySalts({
    ...place,
    connection: rig.connection,
    wallMs: () => clock.nowMs + errorMs,
    serverMsOf: () => clock.nowMs,
    log: { warn: (_, message) => void warnings.push(message) },
  });
  onTestFinished(() => salts.close());
  return Object.assign(salts, { warnings });
}

const hexOf = (salt: Uint8Array) => Buffer.from(salt).toString("hex");

/** Returns whether a file of the store has the bytes. */
function isInStore(bytes: Uint8Array): boolean {
  const files = readdirSync(rig.server.storeDir, { recursive: true, withFileTypes: true });
  return files.some(
    (file) =>
      file.isFile() &&
      readFileSync(path.join(file.parentPath, file.name)).includes(Buffer.from(bytes)),
  );
}

test("all gateways have the same salt on the same day, and each project has its own", async () => {
  const place = newPlace();
  const clock = { nowMs: morningMs };
  const gateways = [saltsAt(place, clock), saltsAt(place, clock), saltsAt(place, clock)];
  await Promise.all(gateways.flatMap((one) => [one.provide("shop"), one.provide("blog")]));
  const hex = (project: string, of = day) =>
    gateways.map(
      (one) => one.saltOf(project, of) && Buffer.from(one.saltOf(project, of)!).toString("hex"),
    );
  expect(new Set(hex("shop")).size).toBe(1);
  expect(new Set([...hex("shop"), ...hex("blog")]).size).toBe(2);
  expect(hex("shop")[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(new Set([...hex("shop", day - 1), ...hex("shop", day + 1)]).size).toBe(2);
  expect([...hex("shop", day - 2), ...hex("shop", day + 2), ...hex("other")]).toEqual(
    Array.from({ length: 9 }, () => undefined),
  );
});

test("each day has a salt while it is that day in some time zone, and an hour before and after", async () => {
  const place = newPlace();
  const clock = { nowMs: day * dayMs };
  const salts = saltsAt(place, clock);
  const known = new Map<number, Uint8Array>();
  for (let hour = 0; hour < 72; hour++) {
    clock.nowMs = day * dayMs + hour * hourMs;
    await salts.provide("shop");
    await salts.eraseOld();
    for (let of = day - 3; of <= day + 5; of++) {
      const sinceStartMs = clock.nowMs - of * dayMs;
      const salt = salts.saltOf("shop", of);
      const isNeeded = sinceStartMs >= -14 * hourMs && sinceStartMs < 36 * hourMs;
      const isOver = sinceStartMs >= 37 * hourMs || sinceStartMs < -15 * hourMs;
      if (isNeeded) expect(salt, `day ${of - day}, hour ${hour}`).toHaveLength(32);
      if (isOver) expect(salt, `day ${of - day}, hour ${hour}`).toBeUndefined();
      if (salt === undefined) continue;
      expect(salt, "a day keeps its salt").toEqual(known.get(of) ?? salt);
      known.set(of, salt);
    }
  }
  salts.release("shop");
  expect(salts.saltOf("shop", day + 2)).toBeUndefined();
});

test("a salt is overwritten in the files of the store when its day is over everywhere, 52 hours after it was created", async () => {
  const place = newPlace();
  const createdMs = day * dayMs - 15 * hourMs;
  const clock = { nowMs: createdMs - 1 };
  const salts = saltsAt(place, clock);
  await salts.provide("shop");
  expect(salts.saltOf("shop", day)).toBeUndefined();
  clock.nowMs = createdMs;
  await salts.provide("shop");
  const salt = salts.saltOf("shop", day)!;
  expect(isInStore(salt)).toBe(true);
  clock.nowMs = createdMs + 52 * hourMs - 1;
  await salts.eraseOld();
  expect(isInStore(salt)).toBe(true);
  clock.nowMs = createdMs + 52 * hourMs;
  await salts.eraseOld();
  await expect.poll(() => isInStore(salt), { timeout: 10_000, interval: 50 }).toBe(false);
});

test("a gateway that starts late has the salts of the days that are not over", async () => {
  const place = newPlace();
  const clock = { nowMs: morningMs };
  const first = saltsAt(place, clock);
  await first.provide("shop");
  const late = saltsAt(place, clock);
  await late.provide("shop");
  for (const one of [day - 1, day, day + 1])
    expect(hexOf(late.saltOf("shop", one)!)).toBe(hexOf(first.saltOf("shop", one)!));
});

test("a gateway whose clock is wrong neither creates nor erases salts of other days, and reports it", async () => {
  const place = newPlace();
  const clock = { nowMs: morningMs };
  const right = saltsAt(place, clock);
  await right.provide("shop");
  const salt = right.saltOf("shop", day)!;
  for (const errorMs of [2 * dayMs, -2 * dayMs]) {
    const wrong = saltsAt(place, clock, errorMs);
    await wrong.provide("shop");
    await wrong.eraseOld();
    expect(hexOf(wrong.saltOf("shop", day)!)).toBe(hexOf(salt));
    expect(wrong.saltOf("shop", day + errorMs / dayMs)).toBeUndefined();
    expect(wrong.warnings).toEqual([expect.stringContaining("differ by more than an hour")]);
  }
  expect(isInStore(salt)).toBe(true);
  expect(right.warnings).toEqual([]);
});

test("the time of nats-server is that of its clock", async () => {
  const salts = new DailySalts({
    ...newPlace(),
    connection: rig.connection,
    wallMs: () => 0,
    log: { warn: () => {} },
  });
  onTestFinished(() => salts.close());
  await salts.provide("shop");
  expect(salts.saltOf("shop", Math.floor(Date.now() / dayMs))).toHaveLength(32);
  expect(salts.saltOf("shop", 0)).toBeUndefined();
});

test.each(["the bucket", "a salt"])(
  "after the loss of %s, all gateways have the same new salt again, and report it",
  async (lost) => {
    const place = newPlace();
    const clock = { nowMs: morningMs };
    const gateways = [saltsAt(place, clock), saltsAt(place, clock)];
    for (const one of gateways) await one.provide("shop");
    const before = gateways[0]!.saltOf("shop", day)!;
    const manager = await jetstreamManager(rig.connection);
    const stream = `KV_${place.prefix}_salts`;
    if (lost === "the bucket") await manager.streams.delete(stream);
    else {
      const subject = `$KV.${place.prefix}_salts.shop.${day}`;
      const message = await manager.streams.getMessage(stream, { last_by_subj: subject });
      await manager.streams.deleteMessage(stream, message!.seq);
    }
    for (const one of gateways) await one.provide("shop");
    const after = gateways.map((one) => hexOf(one.saltOf("shop", day)!));
    expect(new Set(after).size).toBe(1);
    expect(after[0]).not.toBe(hexOf(before));
    for (const { warnings } of gateways)
      expect(warnings).toEqual([
        expect.stringContaining("daily salts: the bucket has lost a salt"),
      ]);
  },
);

test("removeSalts overwrites the salts of one project", async () => {
  const place = newPlace();
  const salts = saltsAt(place, { nowMs: morningMs });
  for (const id of ["shop", "shop-2"]) await salts.provide(id);
  const [gone, other] = [salts.saltOf("shop", day)!, salts.saltOf("shop-2", day)!];
  await removeSalts(rig.connection, { ...place, id: "shop" });
  await expect.poll(() => isInStore(gone), { timeout: 10_000, interval: 50 }).toBe(false);
  expect(isInStore(other)).toBe(true);
});

test("without the store there is no salt, which is reported, and it is there later", async () => {
  const place = newPlace();
  const salts = saltsAt(place, { nowMs: morningMs });
  rig.server.freeze();
  await salts.provide("shop");
  expect(salts.saltOf("shop", day)).toBeUndefined();
  rig.server.thaw();
  await expect.poll(() => salts.saltOf("shop", day)?.length, { timeout: 20_000 }).toBe(32);
  expect(salts.warnings[0]).toBe("daily salts: cannot be read or erased, trying again");
});

test("a damaged salt stops only its own day", async () => {
  const place = newPlace();
  const clock = { nowMs: day * dayMs + 60_000 };
  const other = saltsAt(place, clock);
  await other.provide("shop");
  await jetstream(rig.connection).publish(`$KV.${place.prefix}_salts.shop.${day - 1}`, "short");
  const salts = saltsAt(place, clock);
  await salts.provide("shop");
  expect(salts.saltOf("shop", day - 1)).toBeUndefined();
  expect(Buffer.compare(salts.saltOf("shop", day)!, other.saltOf("shop", day)!)).toBe(0);
});

test("a damaged salt stops neither the salts of other projects nor the erasure", async () => {
  const place = newPlace();
  const clock = { nowMs: day * dayMs + 60_000 };
  const other = saltsAt(place, clock);
  await other.provide("blog");
  const old = other.saltOf("blog", day)!;
  await other.close();
  clock.nowMs += 3 * dayMs;
  const salts = saltsAt(place, clock);
  await jetstream(rig.connection).publish(`$KV.${place.prefix}_salts.shop.${day + 3}`, "short");
  await salts.provide("shop");
  expect(salts.saltOf("shop", day + 3)).toBeUndefined();
  clock.nowMs -= dayMs;
  await salts.provide("blog");
  clock.nowMs += dayMs;
  // The loop has the work for both.
  await expect.poll(() => isInStore(old), { timeout: 60_000, interval: 200 }).toBe(false);
  expect(salts.saltOf("blog", day + 3)).toHaveLength(32);
  expect(salts.saltOf("shop", day + 3)).toBeUndefined();
}, 70_000);
