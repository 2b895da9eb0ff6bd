// The store as it is on disk immediately after a 200. An existing file counts as on disk, because
// no system call reports whether its directory entry is on disk.

import { describe, expect, test } from "vitest";
import {
  blocksOf,
  cutPower,
  embeddedStore,
  idsIn,
  lazyStore,
  loadedGateway,
  missing,
  notOnDisk,
  onDisk,
  type PowerCut,
} from "./durability-kit.ts";

const waves = 4;
const singles = 5;
const lazyWavesMax = 5;

describe("after a power cut", () => {
  test("every acknowledged event of a load is on disk", async () => {
    const cache = onDisk();
    const store = await embeddedStore(cache.folder);
    const load = await loadedGateway(store);
    const cuts: [PowerCut, ReadonlySet<string>][] = [];
    for (let wave = 0; wave < waves; wave++) {
      await load.wave();
      cuts.push([cutPower(store, cache), new Set(load.acknowledged)]);
    }
    for (const lane of ["LIVE", "HISTORICAL"] as const)
      expect(blocksOf(store.storeDir, lane).length).toBeGreaterThan(1);
    for (const [{ storeDir, lost }, acknowledged] of cuts) {
      expect(Object.keys(lost).filter((file) => file.endsWith(".blk"))).toEqual([]);
      expect(missing(acknowledged, await idsIn(storeDir, load))).toEqual([]);
    }
    expect(load.acknowledged.size).toBe(waves * 8 * 16);
  });

  test("no part of a block of single events is missing on disk", async () => {
    const cache = onDisk();
    const store = await embeddedStore(cache.folder);
    const load = await loadedGateway(store);
    for (let turn = 0; turn < singles; turn++) {
      await load.single();
      const lost = cache.isTold ? Object.keys(notOnDisk(store)) : [];
      expect(lost.filter((file) => file.endsWith(".blk"))).toEqual([]);
    }
    const cut = cutPower(store, cache);
    expect(missing(load.acknowledged, await idsIn(cut.storeDir, load))).toEqual([]);
  });

  test("acknowledged events are lost with a sync_interval of 2 minutes", async () => {
    const cache = onDisk();
    const store = await lazyStore(cache.folder);
    const load = await loadedGateway(store);
    await load.wave();
    const killed = cutPower(store, { ...cache, isTold: false });
    expect(missing(load.acknowledged, await idsIn(killed.storeDir, load))).toEqual([]);
    let gone: string[] = [];
    // Tries several times, because the kernel may have written all pages before the power cut.
    for (let wave = 0; cache.isTold && gone.length === 0 && wave < lazyWavesMax; wave++) {
      await load.wave();
      gone = missing(load.acknowledged, await idsIn(cutPower(store, cache).storeDir, load));
    }
    expect(gone.length > 0).toBe(cache.isTold);
  });
});
