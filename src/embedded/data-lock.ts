// One gateway at a time on a data folder. Every process that wants it lays down a claim of its own, then looks for
// others: of two, at least one sees the other and steps back, so there are never two owners. The claims of processes
// that died are removed by whoever comes next.

import { randomBytes, randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { identify, isRunning, type ProcessHost, type ProcessIdentity } from "./process-identity.ts";

export interface DataLock {
  release(): void;
}

/** An expected failure to start: the message is all that the user has to see. */
export class EmbeddedError extends Error {}

interface Claim extends ProcessIdentity {
  readonly held: boolean;
}

const claimPattern = /^owner-.*\.json$/;
const triesMax = 20;
const retryMsMin = 20;
const retryMsMax = 120;
/** An owner that was just killed may be seen a moment longer. */
const heldTriesMax = 8;

/** Throws an EmbeddedError that names the owner's pid when the folder is in use; nothing is changed then. */
export async function lockDataDir(dataDir: string, host: ProcessHost): Promise<DataLock> {
  const folder = join(dataDir, "nats");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const own = join(folder, `owner-${host.pid}-${randomBytes(4).toString("hex")}.json`);
  const self = identify(host.pid, host) ?? { pid: host.pid, startedAt: "" };
  let other: Claim | undefined;
  for (let tries = 0; tries < triesMax; tries++) {
    writeClaim(own, { ...self, held: false });
    other = liveClaim(folder, own, host);
    if (other === undefined) {
      writeClaim(own, { ...self, held: true });
      return { release: () => rmSync(own, { force: true }) };
    }
    rmSync(own, { force: true });
    if (other.held && tries >= heldTriesMax) break;
    await delay(randomInt(retryMsMin, retryMsMax));
  }
  throw new EmbeddedError(`start on ${dataDir}: the folder is in use by process ${other?.pid}`);
}

function writeClaim(file: string, claim: Claim): void {
  // The name of the file in the making does not match the pattern: a claim is seen whole or not at all.
  const next = `${file}.next`;
  writeFileSync(next, JSON.stringify(claim), { mode: 0o600 });
  renameSync(next, file);
}

function liveClaim(folder: string, own: string, host: ProcessHost): Claim | undefined {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (file === own || !claimPattern.test(name)) continue;
    const claim = readClaim(file);
    if (claim === undefined) continue;
    if (isRunning(claim, host)) return claim;
    // Names are never used twice, so this removes the dead process's claim and no other.
    rmSync(file, { force: true });
  }
  return undefined;
}

function readClaim(file: string): Claim | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Claim;
  } catch {
    return undefined;
  }
}
