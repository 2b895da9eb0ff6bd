// Loads the addon and creates scanners with it. Runs from src/records and from dist/records; the
// addon itself is built in src/records/addon.

import { isDeepStrictEqual } from "node:util";
import { loadNativeModule } from "../platform/base/native-module.ts";
import { Part } from "./fields.ts";
import type { LineFunctions } from "./lines.ts";
import * as lines from "./lines.ts";
import * as table from "./table.ts";
import { type BackgroundScanner, rowsMax, type ScanStatus, tableWords } from "./table.ts";

interface NativeScanner {
  scan(body: Buffer): ScanStatus;
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  scanAtOnce(body: Buffer): ScanStatus;
  scanMore(body: Buffer): void;
  /**
   * Scans the body in the thread pool. This method and `scanMoreInBackground` throw, instead of
   * rejecting, for errors found before they start.
   */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  scanMoreInBackground(body: Buffer): Promise<void>;
  finish(): void;
  release(): void;
}

/**
 * The exports of the addon. `layout` has the numbers of table.ts as the C++ side has them, in the
 * form "Group.Name": number.
 */
interface Addon extends LineFunctions {
  readonly EventScanner: new (table: Uint32Array) => NativeScanner;
  /**
   * Inflates bodies with the zlib of Node: see QuickInflater in gateway/body/inflate.ts.
   */
  readonly Inflater: new () => {
    inflate(body: Uint8Array, output: Uint8Array, windowBits: number): number;
  };
  readonly layout: Readonly<Record<string, number>>;
  readonly normalise: BackgroundScanner["normalise"];
  readonly repair: (
    body: Buffer,
    until: number,
    text: Buffer,
    malformed: Uint32Array,
    nonFinite: Uint32Array,
    progress: Uint32Array,
  ) => void;
  /**
   * Makes the whole process return blocks of memory of 4 MiB and more to the system as soon as they
   * are freed.
   */
  readonly returnLargeBlocks: () => void;
  /**
   * Returns the CPU time of the calling thread in milliseconds, from an unspecified origin. A call
   * takes a third of a microsecond.
   */
  readonly threadCpuMs: () => number;
}

const addonPlaces = [
  "./addon/build/Release/event_scan.node",
  "../../src/records/addon/build/Release/event_scan.node",
].map((place) => new URL(place, import.meta.url));

let loaded: Addon | undefined;

/**
 * Loads the addon once and returns it. Throws, with the cause, if the addon is not built, does not
 * load, or was built from another version of the source.
 */
export function loadAddon(): Addon {
  loaded ??= ofThisVersion(loadNativeModule("scanner", addonPlaces) as Addon);
  return loaded;
}

function ofThisVersion(addon: Addon): Addon {
  const { NotNormal: _, ...ofTable } = table;
  const here = Object.entries({ ...ofTable, ...lines, Part }).flatMap(([group, numbers]) =>
    Object.entries(numbers).map(([name, value]) => [`${group}.${name}`, value]),
  );
  if (isDeepStrictEqual(addon.layout, Object.fromEntries(here))) return addon;
  throw new Error(
    "the native scanner was built from another version of the source: build it with `npm run setup`",
  );
}

/**
 * Creates a scanner with the addon. A scanner belongs to one JavaScript thread. Create one per
 * thread, and one per body that is scanned concurrently. Background scans use libuv's thread pool,
 * which they share with zlib and the file system. The pool has four threads unless
 * UV_THREADPOOL_SIZE changes the number.
 *
 * @param rows Number of rows in the table. `scanMore` returns further events of a body.
 */
export function createNativeScanner(rows: number = rowsMax): BackgroundScanner {
  const { EventScanner, normalise, repair } = loadAddon();
  const table = new Uint32Array(tableWords(rows));
  const native = new EventScanner(table);
  return {
    table,
    scan: (body) => native.scan(body),
    scanPart: (body, start, end) => native.scanPart(body, start, end),
    scanAtOnce: (body) => native.scanAtOnce(body),
    scanMore: (body) => native.scanMore(body),
    normalise,
    repair: (body, until, { text, malformed, nonFinite, progress }) =>
      repair(body, until, text, malformed, nonFinite, progress),
    scanInBackground: async (body) => native.scanInBackground(body),
    scanMoreInBackground: async (body) => native.scanMoreInBackground(body),
    finish: () => native.finish(),
    release: () => native.release(),
  };
}
