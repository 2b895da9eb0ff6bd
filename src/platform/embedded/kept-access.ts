// Decides on which port an embedded nats-server listens and which token it asks for: as the
// settings say, else as the configuration of its last start says, so that readers find it again.
// Refuses a nats-server that is older than the one that last wrote the store: a file beside the
// store names that one's version.

import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { EmbeddedError } from "./data-lock.ts";
import { freePort, isFree } from "./free-port.ts";
import {
  natsConfigFile,
  readNatsConfig,
  readStoreVersion,
  storeVersionFile,
  type WrittenNatsConfig,
} from "./nats-config.ts";

export interface EmbeddedAccess {
  /** -1 makes nats-server take any free port. */
  readonly port: number;
  readonly token: string;
}

interface WantedAccess {
  readonly dataDir: string;
  /** The port that was set; undefined takes that of the last start, else one that is free. */
  readonly port: number | undefined;
  readonly token: string | undefined;
  /** The version of the nats-server that is to open the store. */
  readonly version: string;
  readonly log: Pick<Log, "warn">;
}

/**
 * Throws an EmbeddedError when the port that was set is taken, or the store is of a newer
 * nats-server.
 */
export async function accessOf({
  dataDir,
  port,
  token,
  version,
  log,
}: WantedAccess): Promise<EmbeddedAccess> {
  const kept = readNatsConfig(dataDir);
  refuseOlder(dataDir, { wrote: wroteStore(dataDir, kept, version), opens: version });
  if (kept?.isDamaged === true) {
    const lost = [
      ...(kept.port === undefined ? ["port"] : []),
      ...(kept.token === undefined ? ["token"] : []),
    ];
    log.warn(
      { file: natsConfigFile(dataDir), lost },
      "the embedded nats-server's last configuration is damaged: what cannot be read of its port and token is chosen anew, unless PENSTOCK_NATS_PORT and PENSTOCK_NATS_TOKEN set it",
    );
  }
  const found = { token: token ?? kept?.token ?? randomBytes(24).toString("base64url") };
  if (port !== undefined) {
    if (await isFree(port)) return { ...found, port };
    throw new EmbeddedError(
      `start nats-server: port ${port} is taken: set PENSTOCK_NATS_PORT (--nats-port) to another, or end who has it: ss -ltnp sport = :${port}`,
    );
  }
  if (kept?.port !== undefined) {
    if (await isFree(kept.port)) return { ...found, port: kept.port };
    log.warn(
      { port: kept.port },
      "the embedded nats-server's port is taken by another process: it moves to a new one",
    );
  }
  return { ...found, port: await freePort() };
}

/**
 * The version that last wrote the store; undefined where none was ever noted, as for a new store.
 * Throws an EmbeddedError where one was noted and cannot be read.
 */
function wroteStore(
  dataDir: string,
  kept: WrittenNatsConfig | undefined,
  opens: string,
): string | undefined {
  const noted = readStoreVersion(dataDir);
  if (noted !== "damaged" && noted !== undefined) return noted;
  if (kept?.version !== undefined) return kept.version;
  if ((noted === undefined && kept?.isDamaged !== true) || !hasStore(dataDir)) return undefined;
  const file = storeVersionFile(dataDir);
  throw new EmbeddedError(
    `start on ${dataDir}: which nats-server wrote its store cannot be told, because ${noted === undefined ? natsConfigFile(dataDir) : file} is damaged, and one that is older than it may not read all of it: if ${opens} is at least as new, say so: echo ${opens} > ${file}`,
  );
}

function hasStore(dataDir: string): boolean {
  return readdirSync(join(dataDir, "jetstream"), { withFileTypes: true }).some((entry) =>
    entry.isDirectory(),
  );
}

/** A newer nats-server can read what an older one wrote; the reverse is not supported. */
function refuseOlder(
  dataDir: string,
  { wrote, opens }: { wrote: string | undefined; opens: string },
): void {
  const [last, next] = [lineOf(wrote ?? ""), lineOf(opens)];
  if (last === undefined || next === undefined || next >= last) return;
  throw new EmbeddedError(
    `start on ${dataDir}: its store was last written by nats-server ${wrote}, and ${opens} is older, which may not read all of it: in a checkout run \`npm run setup\`, else name one of ${wrote} or newer in PENSTOCK_NATS_SERVER`,
  );
}

/** Major and minor version as one number; undefined when the text has none. */
function lineOf(version: string): number | undefined {
  const match = /^(\d+)\.(\d+)\./.exec(version);
  return match === null ? undefined : Number(match[1]) * 1_000 + Number(match[2]);
}
