import { existsSync, statfsSync } from "node:fs";
import { totalmem } from "node:os";
import { join, resolve } from "node:path";
import { constrainedMemory } from "node:process";
import { connectionsRoom, openFilesMax } from "../../platform/base/open-files.ts";
import { nearestExisting } from "../../platform/embedded/data-lock.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";

const filesLeast = 256;
const filesWanted = 8_192;
/**
 * The memory of an idle gateway process without its buffers. docs/guides/sizing.md contains the
 * same number.
 */
const restBytes = 120 * 1_048_576;
const processBytes = restBytes + 160 * 1_048_576;

export function checkFiles(): Finding {
  const check = checkOf("open files");
  const limit = openFilesMax();
  if (limit === undefined) return check.ok("the limit is unknown on this system");
  const fix =
    "`ulimit -n 65536` before the start, LimitNOFILE=65536 in systemd, ulimits in Compose";
  const found = `up to ${limit}, enough for some ${connectionsRoom(limit)} connections per process`;
  if (limit < filesLeast) return check.fail(found, fix);
  return limit < filesWanted
    ? check.warn(found, fix)
    : check.ok(limit === Number.POSITIVE_INFINITY ? "no limit" : found);
}

/** Checks the memory. Small requests may exceed the limit for bytes in flight by an eighth. */
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
  const fix = `${lower}; or raise the memory limit (MemoryMax in systemd, resources.limits.memory in Kubernetes)`;
  return workers * restBytes > bytes
    ? check.fail(found, fix)
    : check.warn(`${found}: the system may kill it under load`, fix);
}

function memoryLimit(): { bytes: number; isGroup: boolean } {
  const machine = totalmem();
  // Without a limit, this is 0 or, in version 1 of control groups, more than the total memory.
  const group = constrainedMemory();
  const isGroup = group > 0 && group < machine;
  return { bytes: isGroup ? group : machine, isGroup };
}

interface DiskQuestion {
  readonly dataDir: string;
  readonly streamBytesTotal: number;
  readonly storedBytes: number | undefined;
}

export function checkDisk({ dataDir, streamBytesTotal, storedBytes }: DiskQuestion): Finding {
  const check = checkOf("disk");
  const folder = resolve(dataDir);
  const isNew = !existsSync(join(folder, "jetstream"));
  const fix =
    "lower PENSTOCK_STREAM_BYTES_MAX or PENSTOCK_REJECTED_BYTES (both apply per stream), or set PENSTOCK_DATA_DIR to a folder on another disk";
  let freeBytes: number;
  try {
    const disk = statfsSync(nearestExisting(folder));
    freeBytes = disk.bavail * disk.bsize;
  } catch (error) {
    return check.fail(
      `${dataDir} cannot be read: ${(error as NodeJS.ErrnoException).code}`,
      "set PENSTOCK_DATA_DIR to another folder",
    );
  }
  const toCome = Math.max(0, streamBytesTotal - (storedBytes ?? 0));
  const found = `the streams may grow by ${shownBytes(toCome)}, and ${dataDir} has ${shownBytes(freeBytes)} free`;
  if (freeBytes >= toCome) return check.ok(found);
  if (isNew) return check.fail(`${found}: the gateway does not start`, fix);
  if (freeBytes < streamBytesTotal / 20)
    return check.fail(`${found}: the disk is nearly full`, fix);
  return check.warn(`${found}: the disk may fill up first`, fix);
}
