// Chooses the port and the token of an embedded nats-server. They stay the same at every start, so
// that readers can reconnect.

import { randomBytes, randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { tryListen } from "../base/http-port.ts";
import type { Log } from "../base/log.ts";
import { EmbeddedError } from "./data-lock.ts";
import {
  natsConfigFile,
  readNatsConfig,
  readStoreVersion,
  storeVersionFile,
  type WrittenNatsConfig,
} from "./nats-config.ts";

export interface EmbeddedAccess {
  readonly port: number;
  readonly token: string;
}

interface WantedAccess {
  readonly dataDir: string;
  readonly port: number | undefined;
  readonly token: string | undefined;
  readonly version: string;
  readonly log: Pick<Log, "warn">;
}

/** Throws an EmbeddedError if the port is in use, or if a newer nats-server wrote the store. */
export async function accessOf({
  dataDir,
  port,
  token,
  version,
  log,
}: WantedAccess): Promise<EmbeddedAccess> {
  const last = readNatsConfig(dataDir);
  refuseOlder(dataDir, { wrote: wroteStore(dataDir, last, version), opens: version });
  if (last?.isDamaged === true) {
    const lost = [
      ...(last.port === undefined ? ["port"] : []),
      ...(last.token === undefined ? ["token"] : []),
    ];
    log.warn(
      { file: natsConfigFile(dataDir), lost },
      "embedded nats-server configuration damaged: unless PENSTOCK_NATS_PORT and PENSTOCK_NATS_TOKEN are set, new values replace the unreadable values in `lost`",
    );
  }
  const found = { token: token ?? last?.token ?? randomBytes(24).toString("base64url") };
  if (port !== undefined) {
    if (await isFree(port)) return { ...found, port };
    throw new EmbeddedError(
      `cannot start nats-server: port ${port} is taken: set PENSTOCK_NATS_PORT (--nats-port) to another port, or stop the process that uses it; \`ss -ltnp sport = :${port}\` shows it`,
    );
  }
  if (last?.port !== undefined) {
    if (await isFree(last.port)) return { ...found, port: last.port };
    log.warn(
      { port: last.port },
      "embedded nats-server port is in use by another process: using a new port",
    );
  }
  return { ...found, port: await freePort() };
}

function wroteStore(
  dataDir: string,
  last: WrittenNatsConfig | undefined,
  opens: string,
): string | undefined {
  const noted = readStoreVersion(dataDir);
  if (noted !== "damaged" && noted !== undefined) return noted;
  if (last?.version !== undefined) return last.version;
  if ((noted === undefined && last?.isDamaged !== true) || !hasStore(dataDir)) return undefined;
  const file = storeVersionFile(dataDir);
  throw new EmbeddedError(
    `cannot start on ${dataDir}: the nats-server version that wrote the store is unknown, because ${noted === undefined ? natsConfigFile(dataDir) : file} is damaged; an older version might not read all of the store. If the store was not written by a version newer than ${opens}, record this: echo ${opens} > ${file}`,
  );
}

function hasStore(dataDir: string): boolean {
  return readdirSync(join(dataDir, "jetstream"), { withFileTypes: true }).some((entry) =>
    entry.isDirectory(),
  );
}

function refuseOlder(
  dataDir: string,
  { wrote, opens }: { wrote: string | undefined; opens: string },
): void {
  const [last, next] = [lineOf(wrote ?? ""), lineOf(opens)];
  if (last === undefined || next === undefined || next >= last) return;
  throw new EmbeddedError(
    `cannot start on ${dataDir}: the store was last written by nats-server ${wrote}; the older ${opens} might not read all of it: use nats-server ${wrote} or newer: in a checkout run \`npm run setup\`, in a container use a newer image, otherwise set PENSTOCK_NATS_SERVER to its file`,
  );
}

function lineOf(version: string): number | undefined {
  const match = /^(\d+)\.(\d+)\./.exec(version);
  return match === null ? undefined : Number(match[1]) * 1_000 + Number(match[2]);
}

const portMin = 15_000;
const portMax = 32_000;
const triesMax = 200;

/**
 * Returns a free port below 32,768, because Linux uses the ports from there on for outgoing
 * connections. Returns -1 after too many attempts. In that case, nats-server chooses the port.
 */
async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
  return -1;
}

function isFree(port: number): Promise<boolean> {
  return tryListen("127.0.0.1", port).then(
    () => true,
    () => false,
  );
}
