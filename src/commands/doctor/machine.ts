// Checks what the machine offers: open files, memory, room on disk. It reads /proc and the control
// group. Where these are missing it says what it cannot see.

import { existsSync, readFileSync, statfsSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import { connectionsRoom, openFilesMax } from "../../platform/base/open-files.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";

const filesLeast = 256;
const filesWanted = 8_192;
/**
 * `restBytes` is what a gateway process takes at rest. `processBytes` also has its buffers and scan
 * tables, which the in-flight budget does not count. docs/guides/sizing.md plans with the same
 * numbers, under "Memory".
 */
const restBytes = 120 * 1_048_576;
const processBytes = restBytes + 160 * 1_048_576;

/**
 * Each connection takes one open file. Node raises its soft limit to the hard one, in the gateway
 * as in this command, so both have the same limit.
 */
export function checkFiles(): Finding {
  const check = checkOf("open files");
  const limit = openFilesMax();
  if (limit === undefined) return check.ok("the limit cannot be seen here");
  const fix =
    "`ulimit -n 65536` before the start, LimitNOFILE=65536 in systemd, ulimits in compose";
  const found = `up to ${limit}, so some ${connectionsRoom(limit)} connections a process`;
  if (limit < filesLeast) return check.fail(found, fix);
  return limit < filesWanted
    ? check.warn(found, fix)
    : check.ok(limit === Number.POSITIVE_INFINITY ? "no limit" : found);
}

/**
 * Each process needs its in-flight budget, an eighth of that again, by which small requests may
 * exceed it, and what the process itself takes.
 */
export function checkMemory({
  inflightBytesMax,
  workers,
}: {
  inflightBytesMax: number;
  workers: number;
}): Finding {
  const check = checkOf("memory");
  const needed = workers * (inflightBytesMax * 1.125 + processBytes);
  const { bytes, isGroup } = memoryLimit();
  const what = isGroup ? "the control group allows" : "the machine has";
  const found = `${workers === 1 ? "a process" : `${workers} processes`} may need ${shownBytes(needed)}, ${what} ${shownBytes(bytes)}`;
  if (needed <= bytes) return check.ok(found);
  const room = Math.floor((bytes / workers - processBytes) / 1.125);
  const lower =
    room >= 1_048_576 ? `PENSTOCK_INFLIGHT_BYTES_MAX=${room} would fit` : "lower PENSTOCK_WORKERS";
  const fix = `${lower}; or raise the limit of memory (MemoryMax in systemd, resources.limits.memory in Kubernetes)`;
  return workers * restBytes > bytes
    ? check.fail(found, fix)
    : check.warn(`${found}: it may be killed under load`, fix);
}

/**
 * The smallest memory limit of the control group and of the groups above it (version 2, then 1), or
 * the machine's memory where that is smaller.
 */
function memoryLimit(): { bytes: number; isGroup: boolean } {
  const machine = totalmem();
  const groups = readIfThere("/proc/self/cgroup") ?? "";
  const unified = /^0::(.*)$/m.exec(groups)?.[1];
  const former = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups)?.[1];
  const limits = [
    ...limitsUpFrom("/sys/fs/cgroup", unified, "memory.max"),
    ...limitsUpFrom("/sys/fs/cgroup/memory", former, "memory.limit_in_bytes"),
  ];
  const bytes = Math.min(machine, ...limits);
  return { bytes, isGroup: bytes < machine };
}

/**
 * Inside of a container the group's path may be one that only the host has. Then only the root has
 * the file, and the root is the container's own group.
 */
function limitsUpFrom(root: string, group: string | undefined, file: string): number[] {
  if (group === undefined) return [];
  const limits: number[] = [];
  for (let path = resolve("/", group); ; path = dirname(path)) {
    const text = readIfThere(join(root, path, file))?.trim();
    if (text !== undefined && /^\d+$/.test(text)) limits.push(Number(text));
    if (path === "/") return limits;
  }
}

interface DiskQuestion {
  readonly dataDir: string;
  /** Bytes that all streams together may grow to. */
  readonly streamBytesTotal: number;
  /** Bytes that the streams hold now; undefined when NATS could not be asked. */
  readonly storedBytes: number | undefined;
}

/** Checks whether the embedded nats-server's disk has room for what the streams may still store. */
export function checkDisk({ dataDir, streamBytesTotal, storedBytes }: DiskQuestion): Finding {
  const check = checkOf("disk");
  const folder = resolve(dataDir);
  const isNew = !existsSync(join(folder, "jetstream"));
  const fix =
    "lower PENSTOCK_STREAM_BYTES_MAX (it counts per stream), or name a folder on another disk in PENSTOCK_DATA_DIR";
  let freeBytes: number;
  try {
    const disk = statfsSync(nearest(folder));
    freeBytes = disk.bavail * disk.bsize;
  } catch (error) {
    return check.fail(
      `${dataDir} cannot be looked at: ${(error as NodeJS.ErrnoException).code}`,
      "name another PENSTOCK_DATA_DIR",
    );
  }
  const toCome = Math.max(0, streamBytesTotal - (storedBytes ?? 0));
  const found = `the streams may grow by ${shownBytes(toCome)}, and ${dataDir} has ${shownBytes(freeBytes)} free`;
  if (freeBytes >= toCome) return check.ok(found);
  if (isNew) return check.fail(`${found}: the start refuses that`, fix);
  if (freeBytes < streamBytesTotal / 20) return check.fail(`${found}: it is nearly full`, fix);
  return check.warn(`${found}: it may be full before they are`, fix);
}

function nearest(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder));
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
