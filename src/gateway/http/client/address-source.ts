// Finds the client of a request: the socket's peer or, if the peer is a trusted proxy, the client
// that it names by PROXY protocol or X-Forwarded-For.

import { addressOfText, createAddressReader } from "../../../platform/base/addresses.ts";
import type { Log } from "../../../platform/base/log.ts";
import { createTrust, type Network } from "../../../platform/base/networks.ts";
import type { HttpRequest, HttpResponse } from "../uws.ts";
import { clientName } from "./client-name.ts";
import { ConnectionAddresses } from "./connection-addresses.ts";
import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection } from "./connection-limits.ts";
import { NewConnections } from "./new-connections.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

export const proxyProtocolNeedsAddon =
  "PENSTOCK_PROXY_PROTOCOL: needs the connection addon, which is not built or does not load";

export interface AddressSourceConfig {
  readonly recordIp: boolean;
  /** Default: no limit. */
  readonly connectionsMax?: number | undefined;
  /** Default: no limit. */
  readonly addressConnectionsMax?: number | undefined;
  /** Default: no networks. */
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly proxyProtocol?: boolean | undefined;
}

type Peers = Pick<
  ConnectionAddresses<HttpResponse>,
  | "connection"
  | "follow"
  | "of"
  | "wasFirst"
  | "isShared"
  | "noteShared"
  | "agent"
  | "noteAgent"
  | "expects"
  | "noteExpects"
>;

/**
 * A proxy that shares connections among clients adds one of these headers to each request, and a
 * client cannot remove it.
 */
const proxyHeaders = ["x-forwarded-for", "forwarded", "via"];

interface AddressSourceParts {
  readonly connectionId: ConnectionId | undefined;
  readonly unread: UnreadAnswers | undefined;
  readonly log: Pick<Log, "error">;
}

export class AddressSource {
  readonly limits: ConnectionLimits;
  readonly opening = new NewConnections<HttpResponse>(setImmediate);
  readonly #peers: Peers;
  readonly #clientOf: (response: HttpResponse, request: HttpRequest) => string;

  /** Throws if the settings need `connectionId` and it is undefined. */
  constructor(config: AddressSourceConfig, parts: AddressSourceParts) {
    const { recordIp, trustedProxies = [], proxyProtocol = false } = config;
    const hasProxies = trustedProxies.length > 0;
    // uWS accepts a PROXY header before every request. Only the first can be the proxy's: a proxy
    // that forwards bytes forwards whatever its client writes later.
    if (recordIp && proxyProtocol && hasProxies && parts.connectionId === undefined)
      throw new Error(proxyProtocolNeedsAddon);
    const trusts = hasProxies ? createTrust(trustedProxies) : () => false;
    this.limits = new ConnectionLimits({
      connectionsMax: config.connectionsMax ?? Number.POSITIVE_INFINITY,
      addressConnectionsMax: config.addressConnectionsMax ?? Number.POSITIVE_INFINITY,
      isProxy: trusts,
      unread: parts.unread,
    });
    const peers = peersOf(parts, {
      limits: this.limits,
      opening: this.opening,
      trusts: proxyProtocol && hasProxies ? trusts : undefined,
    });
    this.#peers = peers;
    this.#clientOf = hasProxies ? throughProxies(peers, trusts) : (response) => peers.of(response);
  }

  /** Tracks a connection that opens or closes. To be set on every app with `app.filter`. */
  follow(response: HttpResponse, change: number): void {
    this.#peers.follow(response, change);
  }

  /**
   * Returns the client's address, "" if unknown. Must be called once with every request, while its
   * head is being handled. The methods below apply to the request of the last call.
   */
  of(response: HttpResponse, request: HttpRequest): string {
    return this.#clientOf(response, request);
  }

  get connection(): OpenConnection | undefined {
    return this.#peers.connection;
  }

  /**
   * Returns whether a proxy may have read the head. The connection's first request decides it for
   * the later ones. It counts as read by a proxy itself, because its sender is unknown.
   */
  isReadByOthers(request: HttpRequest): boolean {
    const peers = this.#peers;
    if (peers.isShared === undefined) return isFromProxy(request);
    if (!peers.wasFirst) return peers.isShared;
    if (isFromProxy(request)) peers.noteShared();
    return true;
  }

  /**
   * Returns the User-Agent or, on a connection of one client, the name derived from its first one,
   * so that the header is not read every time. `isRead` is the result of `isReadByOthers`.
   */
  agentOf(request: HttpRequest, isRead: boolean): string {
    const peers = this.#peers;
    if (peers.isShared !== false) return request.getHeader("user-agent");
    if (isRead) peers.noteAgent(clientName(request.getHeader("user-agent")));
    return peers.agent;
  }

  /**
   * Returns whether the request has an Expect header. On a connection of one client, later requests
   * are assumed to be like the first, unless they may have a long body.
   */
  expects(request: HttpRequest, { isRead, isLong }: { isRead: boolean; isLong: boolean }): boolean {
    const peers = this.#peers;
    if (!isRead && !isLong && peers.isShared === false && !peers.expects) return false;
    const expects = request.getHeader("expect") !== "";
    if (expects) peers.noteExpects();
    return expects;
  }
}

interface PeersOptions {
  readonly limits: ConnectionLimits;
  readonly opening: NewConnections<HttpResponse>;
  /** Whether a peer is a trusted proxy; undefined if PROXY headers are not read. */
  readonly trusts: ((address: string) => boolean) | undefined;
}

function peersOf({ connectionId, log }: AddressSourceParts, options: PeersOptions): Peers {
  const { limits, opening, trusts } = options;
  const text = createAddressReader();
  const read = (response: HttpResponse) => text(response.getRemoteAddress());
  if (connectionId === undefined) return countedOnly(read, limits);
  const proxied = (response: HttpResponse, peer: string) =>
    trusts?.(peer) === true ? text(response.getProxiedRemoteAddress()) || peer : peer;
  return new ConnectionAddresses({
    connectionId,
    read,
    atFirstRequest: trusts && proxied,
    distrusted: () =>
      log.error({}, "connection ids not unique: addresses are no longer cached by connection"),
    limits,
    opening,
  });
}

function isFromProxy(request: HttpRequest): boolean {
  return proxyHeaders.some((name) => request.getHeader(name) !== "");
}

/** Without the addon connections are counted in total, not by address. */
function countedOnly(of: (response: HttpResponse) => string, limits: ConnectionLimits): Peers {
  return {
    connection: undefined,
    follow(response, change) {
      if (change < 0) limits.closed(undefined);
      else if (limits.opened(undefined) !== undefined) response.close();
    },
    of,
    wasFirst: false,
    isShared: undefined,
    noteShared: () => {},
    agent: "",
    noteAgent: () => {},
    expects: true,
    noteExpects: () => {},
  };
}

function throughProxies(
  peers: Peers,
  trusts: (address: string) => boolean,
): (response: HttpResponse, request: HttpRequest) => string {
  const forwardedFor = createForwardedFor(trusts);
  let lines = "";
  // getHeader returns only the first of several lines. HAProxy appends its line to the client's.
  const collect = (name: string, value: string): void => {
    if (name === "x-forwarded-for") lines = lines === "" ? value : `${lines},${value}`;
  };
  return (response, request) => {
    const peer = peers.of(response);
    if (!trusts(peer)) return peer;
    lines = "";
    request.forEach(collect);
    return forwardedFor(lines) || peer;
  };
}

/** No chain of proxies is that long, but a client may send a longer header. */
const hopsMax = 32;
const cachedMax = 4_096;
/** Longer texts are rare, and `cachedMax` of them would use 64 MiB. */
const cachedTextMax = 128;
/** An IPv6 address with a zone and a port, brackets, quotes and blanks. */
const entryCharsMax = 128;

/**
 * Returns a function that finds the client in the lines of X-Forwarded-For, joined by commas. Each
 * proxy appends its peer, so the client is the first untrusted address from the right; a client may
 * have written the text before it. If all are trusted, it is the last address read.
 */
export function createForwardedFor(trusts: (address: string) => boolean): (text: string) => string {
  const cached = new Map<string, string>();
  return (text) => {
    if (text === "") return "";
    const known = cached.get(text);
    if (known !== undefined) return known;
    const client = walk(text, trusts);
    if (text.length > cachedTextMax) return client;
    if (cached.size >= cachedMax) cached.clear();
    cached.set(text, client);
    return client;
  };
}

function walk(text: string, trusts: (address: string) => boolean): string {
  let client = "";
  let end = text.length;
  for (let hop = 0; hop < hopsMax && end >= 0; hop++) {
    const comma = end === 0 ? -1 : text.lastIndexOf(",", end - 1);
    const address = addressOfEntry(text.slice(comma + 1, end));
    if (address === "") return client;
    client = address;
    if (!trusts(address)) return client;
    end = comma;
  }
  return client;
}

/**
 * Reads any form that proxies write, with or without quotes, port, brackets and zone. Returns ""
 * for no address.
 */
function addressOfEntry(entry: string): string {
  const text = entry.trim();
  if (text.length > entryCharsMax) return "";
  const [, unquoted = text] = /^"(.*)"$/.exec(text) ?? [];
  const [, bracketed, dotted] =
    /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{0,5})?$/.exec(unquoted.trim()) ?? [];
  const address = (bracketed ?? dotted ?? unquoted).trim();
  return addressOfText(address.includes(":") ? address.replace(/%.+$/, "") : address);
}
