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
const defaultPort = 4222;

/**
 * The versions of the cluster's servers by their names; undefined where the server that is
 * connected is in no cluster. A server that is down is not in it. One that does not answer within a
 * second is in it as "", without a version, and so are all where the connected one names none, as
 * with `no_advertise`. Never rejects.
 */
export async function clusterVersions({
  info,
}: Pick<NatsConnection, "info">): Promise<ReadonlyMap<string, string> | undefined> {
  if (info?.cluster === undefined) return undefined;
  const { connect_urls: places = [] } = info;
  const others = places.length === 0 ? [{}] : places.map(infoOf);
  const infos: Info[] = await Promise.all([info, ...others]);
  const versions = new Map<string, string>();
  for (const { server_name: name = "", version = "" } of infos) versions.set(name, version);
  return versions;
}

/** What the server at `host:port` begins with; nothing where that cannot be read. */
function infoOf(place: string): Promise<Info> {
  return new Promise((resolve) => {
    const socket = connect(addressOf(place));
    const end = (info: Info): void => {
      resolve(info);
      socket.destroy();
    };
    socket.setTimeout(readMsMax, () => end({}));
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

/** `host:port`, or `[address]:port`. */
function addressOf(place: string): { host: string; port: number } {
  const [, address, host = address ?? "", port] =
    /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(place) ?? [];
  return { host, port: port === undefined ? defaultPort : Number(port) };
}

function parsed(line: string): Info {
  try {
    return JSON.parse(line.replace(/^INFO /, "")) as Info;
  } catch {
    return {};
  }
}
