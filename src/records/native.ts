import { isDeepStrictEqual } from "node:util";
import { loadNativeModule } from "../platform/base/native-module.ts";
import { Part } from "./fields.ts";
import * as members from "./found-members.ts";
import type { ChangeFunctions } from "./item-changes.ts";
import * as changes from "./item-changes.ts";
import type { LineFunctions } from "./lines.ts";
import * as lines from "./lines.ts";
import type { NameFunctions } from "./name-table.ts";
import * as names from "./name-table.ts";
import * as tasks from "./row-tasks.ts";
import * as samples from "./sample-hash.ts";
import { checkLayout } from "./schema-checks.ts";
import * as table from "./table.ts";
import {
  type BackgroundScanner,
  type MemberFinder,
  rowsMax,
  type ScanStatus,
  tableWords,
} from "./table.ts";

interface NativeScanner extends MemberFinder {
  scan(body: Buffer): ScanStatus;
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  scanAtOnce(body: Buffer): ScanStatus;
  scanMore(body: Buffer): void;
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  scanMoreInBackground(body: Buffer): Promise<void>;
  finish(): void;
  release(): void;
}

interface Addon extends LineFunctions, ChangeFunctions, NameFunctions {
  readonly EventScanner: new (table: Uint32Array) => NativeScanner;
  readonly Inflater: new () => {
    inflate(body: Uint8Array, output: Uint8Array, windowBits: number): number;
  };
  /**
   * The numbers of the addon, which the TypeScript files of the layouts repeat. The names have the
   * form `Group.Name`.
   */
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
  /** Makes the process return freed blocks of 4 MiB or more to the system immediately. */
  readonly returnLargeBlocks: () => void;
  readonly threadCpuMs: () => number;
}

const addonUrls = [
  "./addon/build/Release/event_scan.node",
  "../../src/records/addon/build/Release/event_scan.node",
].map((path) => new URL(path, import.meta.url));

let loaded: Addon | undefined;

/** Throws if the addon is not built, cannot be loaded, or is from another source version. */
export function loadAddon(): Addon {
  loaded ??= ofThisVersion(loadNativeModule("scanner", addonUrls) as Addon);
  return loaded;
}

function ofThisVersion(addon: Addon): Addon {
  const { NotNormal: _, ...ofTable } = table;
  const here = Object.entries({
    ...ofTable,
    ...lines,
    ...members,
    ...changes,
    ...names,
    ...tasks,
    ...samples,
    ...checkLayout,
    Part,
  }).flatMap(([group, numbers]) =>
    Object.entries(numbers).map(([name, value]) => [`${group}.${name}`, value]),
  );
  if (isDeepStrictEqual(addon.layout, Object.fromEntries(here))) return addon;
  throw new Error(
    "the native scanner was built from another version of the source: build it with `npm run setup`",
  );
}

export function createNativeScanner(rows: number = rowsMax): BackgroundScanner {
  const { EventScanner, normalise, repair, changeItems, planRows } = loadAddon();
  const table = new Uint32Array(tableWords(rows));
  const native = new EventScanner(table);
  return {
    table,
    scan: (body) => native.scan(body),
    scanPart: (body, start, end) => native.scanPart(body, start, end),
    scanAtOnce: (body) => native.scanAtOnce(body),
    scanMore: (body) => native.scanMore(body),
    normalise,
    findMembers: (body, tasks, texts, slots, found, changes) =>
      native.findMembers(body, tasks, texts, slots, found, changes),
    changeItems,
    planRows,
    repair: (body, until, { text, malformed, nonFinite, progress }) =>
      repair(body, until, text, malformed, nonFinite, progress),
    scanInBackground: async (body) => native.scanInBackground(body),
    scanMoreInBackground: async (body) => native.scanMoreInBackground(body),
    finish: () => native.finish(),
    release: () => native.release(),
  };
}
