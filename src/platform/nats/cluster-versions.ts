// Reads the version of every server of a cluster from the first line of a connection, which needs
// no user. An unreadable version is unknown, and must not be treated as new.

import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";

interface Info {
  readonly server_name?: string;
  readonly version?: string;
}

/** Returns all addresses of a name, or rejects. */
type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const readMsMax = 1_000;
/** A typical first line has 600 bytes, but it may list many addresses. */
const infoBytesMax = 65_536;
const portMax = 65_535;

/**
 * Returns the version of each server by name; undefined if the connected server is not in a
 * cluster. A server that fails is listed by its address in `places`, without a version. Never
 * rejects.
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

/** Returns the first lines by address. A host name may have several servers. */
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
  // A server may listen on one address family only, for example on 127.0.0.1 but not on ::1.
  const answering = new Set(all.filter(({ info }) => info.version).map(({ family }) => family));
  return all
    .filter(({ family }) => answering.size === 0 || answering.has(family))
    .map(({ at, info }) => [at, info] as const);
}

/** Returns no address if the resolver fails or takes more than a second. */
function addressesOf(host: string, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const none = delay(readMsMax, [], { ref: false });
  return Promise.race([resolve(host).catch(() => []), none]);
}

/** Returns an empty object if the first line is unreadable. */
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
    readLine(socket, (line) => end(parsed(line)));
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

/** Parses `host:port` or `[address]:port`; returns undefined for any other text. */
function addressOf(place: string): { host: string; port: number } | undefined {
  const [, address, host = address ?? "", digits = ""] =
    /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(place) ?? [];
  const port = Number(digits);
  return host === "" || port > portMax ? undefined : { host, port };
}

function parsed(line: string): Info {
  try {
    return (JSON.parse(line.replace(/^INFO /, "")) as Info | null) ?? {};
  } catch {
    return {};
  }
}
