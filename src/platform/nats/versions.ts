// The versions of nats-server with bugs that lose acknowledged events. The numbers in brackets are
// pull requests and issues of nats-io/nats-server.

import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { compareVersions, parseVersion, type Version } from "../base/forms.ts";
import { objectIn } from "../base/json.ts";
import type { Log } from "../base/log.ts";
import type { NatsLink } from "./link.ts";

interface VersionFault {
  readonly bites: string;
  readonly isGrave: boolean;
}

interface Row extends VersionFault {
  readonly from: Version;
  readonly until: Version;
  readonly inClusterOnly: boolean;
  readonly isQuietOnOneNode?: true;
}

/** The versions without known bugs. A single node without power failures can use 2.10.23. */
export const clusterVersionsWanted = "2.14.7, or 2.15 and newer";
const beginning: Version = [0, 0, 0];

const rows: readonly Row[] = [
  {
    from: [2, 10, 20],
    until: [2, 10, 23],
    inClusterOnly: false,
    isGrave: false,
    bites: "can lose a stream when it is killed (6888)",
  },
  {
    from: [2, 10, 14],
    until: [2, 11, 0],
    inClusterOnly: true,
    isGrave: true,
    bites:
      "can report a message as a duplicate, with sequence 0, although it is not stored (5827, fixed in 2.11)",
  },
  {
    from: beginning,
    until: [2, 12, 0],
    inClusterOnly: true,
    isGrave: true,
    bites:
      "loses acknowledged messages when the disk of a node is lost while another node lags (7038, fixed in 2.12)",
  },
  {
    from: beginning,
    until: [2, 14, 0],
    inClusterOnly: true,
    isGrave: false,
    bites:
      "can lose acknowledged messages when nodes are killed or partitioned (Jepsen; 7580, 7620, fixed in 2.14)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: true,
    isGrave: false,
    bites: "lets replicas diverge when a stream is full (8265, fixed in 2.14.7)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: false,
    isQuietOnOneNode: true,
    isGrave: false,
    bites:
      "compacts without the fsync that `sync_interval: always` requires, so that a power failure soon after can lose acknowledged messages (8475, 8456, fixed in 2.14.7)",
  },
];

export function versionFaults(version: string, isClustered: boolean): readonly VersionFault[] {
  return rowsOf(version, isClustered);
}

function rowsOf(version: string, isClustered: boolean): readonly Row[] {
  const asked = parseVersion(version) ?? beginning;
  return rows.filter(
    ({ from, until, inClusterOnly }) =>
      (isClustered || !inClusterOnly) &&
      compareVersions(asked, from) >= 0 &&
      compareVersions(asked, until) < 0,
  );
}

export function logVersionFaults(
  link: Pick<NatsLink, "connection" | "onChange">,
  replicas: number,
  log: Pick<Log, "warn">,
): void {
  const logged = new Set<string>();
  const tell = (): void => {
    const { version = "", cluster } = link.connection.info ?? {};
    if (version === "" || logged.has(version)) return;
    logged.add(version);
    const isClustered = replicas > 1 || cluster !== undefined;
    const said = rowsOf(version, isClustered).filter(
      ({ isQuietOnOneNode }) => isClustered || !isQuietOnOneNode,
    );
    const faults = said.map(({ bites }) => bites);
    if (faults.length === 0) return;
    const wanted = isClustered ? { wanted: clusterVersionsWanted } : {};
    log.warn(
      { version, faults, ...wanted },
      "nats-server has known bugs that can lose acknowledged events or let replicas diverge (see `faults`): upgrade nats-server",
    );
  };
  tell();
  link.onChange((connected) => {
    if (connected) tell();
  });
}

/**
 * Older versions fsync each message of a batch if `sync_interval` is `always` (nats-server pull
 * request 8539). They may also show a reader a changing batch during replication (8369).
 */
const [majorMin, minorMin] = [2, 15];

export function storesAtomicBatchesWell(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/** Returns whether the stream accepts atomic batches. `config` must be from the leader. */
export function takesAtomicBatches(config: StreamConfig): boolean {
  return (
    config.allow_atomic === true && storesAtomicBatchesWell(config.metadata?.["_nats.ver"] ?? "")
  );
}

interface Info {
  readonly server_name?: string;
  readonly version?: string;
}

type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const readMsMax = 1_000;
/** The line usually has 600 bytes. But it can be longer, because it may list many addresses. */
const infoBytesMax = 65_536;
const portMax = 65_535;

/**
 * Returns the version of each server, or undefined if there is no cluster. The version is "" if a
 * server does not respond. Never rejects.
 */
export async function clusterVersions(
  { info }: Pick<NatsConnection, "info">,
  places: readonly string[],
  resolve: Resolve = (host) => lookup(host, { all: true }),
): Promise<ReadonlyMap<string, string> | undefined> {
  if (info?.cluster === undefined) return undefined;
  const versions = new Map([[info.server_name, info.version]]);
  for (const infos of await Promise.all(places.map((place) => infosAt(place, resolve))))
    for (const [place, { server_name: name, version = "" }] of infos)
      versions.set(name ?? place, version);
  return versions;
}

async function infosAt(place: string, resolve: Resolve): Promise<(readonly [string, Info])[]> {
  const asked = addressOf(place);
  if (asked === undefined) return [[place, {}]];
  const found = await addressesOf(asked.host, resolve);
  if (found.length === 0) return [[place, {}]];
  const several = found.length > 1;
  const all = await Promise.all(
    found.map(async ({ address: host, family }) => {
      const info = await infoOf({ host, port: asked.port });
      return { family, at: several ? `${place} (${host})` : place, info };
    }),
  );
  // A server may listen only on IPv4 or only on IPv6, for example on 127.0.0.1 but not on ::1.
  const answering = new Set(all.filter(({ info }) => info.version).map(({ family }) => family));
  return all
    .filter(({ family }) => answering.size === 0 || answering.has(family))
    .map(({ at, info }) => [at, info] as const);
}

function addressesOf(host: string, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const none = delay(readMsMax, [], { ref: false });
  return Promise.race([resolve(host).catch(() => []), none]);
}

function infoOf(address: { host: string; port: number }): Promise<Info> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const end = (info: Info): void => {
      clearTimeout(timer);
      resolve(info);
      socket.destroy();
    };
    const timer = setTimeout(end, readMsMax, {});
    socket.on("error", () => end({}));
    socket.on("close", () => end({}));
    readLine(socket, (line) => end(objectIn(line.replace(/^INFO /, "")) ?? {}));
  });
}

function readLine(socket: Socket, take: (line: string) => void): void {
  let read = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    read += text;
    const end = read.indexOf("\r\n");
    if (end >= 0) take(read.slice(0, end));
    else if (read.length > infoBytesMax) take("");
  });
}

function addressOf(place: string): { host: string; port: number } | undefined {
  const [, address, host = address ?? "", digits = ""] =
    /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(place) ?? [];
  const port = Number(digits);
  return host === "" || port > portMax ? undefined : { host, port };
}
