// Asks every server of a cluster for its version. A server says it in the first line that it sends
// on a connection, before anybody signs in, so it takes neither a user nor the system account. What
// cannot be read counts as unknown: the caller must not take it for new.

import { connect, type Socket } from "node:net";
import type { NatsConnection } from "@nats-io/nats-core";

/** What is used here of the line that a server begins with. */
interface Info {
  readonly server_name?: string;
  readonly version?: string;
}

const readMsMax = 1_000;
/** That line has some 600 bytes, and more where it names many addresses. */
const infoBytesMax = 65_536;
const portMax = 65_535;
const nowhere = "no address announced";

/**
 * The versions of the cluster's servers by their names; undefined where the server that is
 * connected is in no cluster. A server that is down is not in it. One that does not answer within a
 * second is in it by its address, without a version, and so is `nowhere` where the connected one
 * names none, as with `no_advertise`. Never rejects.
 */
export async function clusterVersions({
  info,
}: Pick<NatsConnection, "info">): Promise<ReadonlyMap<string, string> | undefined> {
  if (info?.cluster === undefined) return undefined;
  const { connect_urls: places = [] } = info;
  const versions = new Map([[info.server_name, info.version]]);
  if (places.length === 0) versions.set(nowhere, "");
  const infos = await Promise.all(places.map(infoOf));
  for (const [at, { server_name: name, version = "" }] of infos.entries())
    versions.set(name ?? places[at]!, version);
  return versions;
}

/** What the server at `host:port` begins with; nothing where that cannot be read. */
function infoOf(place: string): Promise<Info> {
  const address = addressOf(place);
  if (address === undefined) return Promise.resolve({});
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
