// Asks every server of a cluster for its version. A server says it in the first line that it sends
// on a connection, before anybody signs in, so it takes neither a user nor the system account. What
// cannot be read counts as unknown: the caller must not take it for new.

import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";

/** What is used here of the line that a server begins with. */
interface Info {
  readonly server_name?: string;
  readonly version?: string;
}

/** Gives all addresses of a name, or rejects. */
type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const readMsMax = 1_000;
/** That line has some 600 bytes, and more where it names many addresses. */
const infoBytesMax = 65_536;
const portMax = 65_535;

/**
 * The versions of the cluster's servers by their names, as far as they can be reached at `places`;
 * undefined where the server that is connected is in no cluster. One that is not found within a
 * second, or does not answer within another, is in it by its address, without a version. Never
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

/** What the servers at `host:port` begin with, by address: behind one name there may be several. */
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
  // A server may listen at its address of one family alone, as at 127.0.0.1 and not at ::1.
  const answering = new Set(all.filter(({ info }) => info.version).map(({ family }) => family));
  return all
    .filter(({ family }) => answering.size === 0 || answering.has(family))
    .map(({ at, info }) => [at, info] as const);
}

/** A resolver that is away would take many seconds. */
function addressesOf(host: string, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const none = delay(readMsMax, [], { ref: false });
  return Promise.race([resolve(host).catch(() => []), none]);
}

/** What the server begins with; nothing where that cannot be read. */
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

/** Reads `host:port` or `[address]:port`; undefined where it is neither. */
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
