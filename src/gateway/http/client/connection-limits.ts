// Limits the number of open connections, in total and from one address, so that descriptors remain
// for NATS, files and the admin port: out of descriptors, the HTTP library spins on its listening
// socket and nothing else can be opened. If all connections are in use, a new one replaces one of
// the address with the most, so that a few addresses cannot lock out the others.

import { networkPrefixOf } from "../../../platform/base/addresses.ts";
import { checkMs, type UnreadAnswers } from "./unread-answers.ts";

interface ConnectionLimitsOptions {
  readonly connectionsMax: number;
  readonly addressConnectionsMax: number;
  /** Whether the address is a proxy's. Proxies forward the connections of many clients. */
  readonly isProxy: (address: string) => boolean;
  /** Tracks unread answers, if the addon is available. */
  readonly unread?: UnreadAnswers | undefined;
}

/** The limit that a connection exceeds: `total` of the process, or `address` of its peer. */
type TooMany = "total" | "address";

/**
 * Why an open connection was closed: for a new one, or because it was idle while many are open.
 */
type ClosedFor = "newcomer" | "idle";

/** From this share of the maximum on, idle connections are closed early. */
const busyShare = 3 / 4;
const sweepMs = 1_000;
/** An idle connection is closed early after this many sweeps: 4 to 5 seconds. */
const idleSweeps = 5;
/** Maximum number of connections closed by a sweep, in some 10 ms. */
const sweptMax = 1_000;
/** Number of the oldest idle connections of an address that are searched at a time. */
const oldestAtATime = 64;

/** IPv6 is counted by /48, which is one site, and within it by /64, which is one host. */
const siteBytes = 6;
const hostBytes = 8;

/** Returns the address, for IPv6 its /48. */
export function siteOf(address: string): string {
  return networkPrefixOf(address, siteBytes);
}

interface ConnectionOfRequest {
  /** The body of its request is incomplete. */
  readonly isReceiving: boolean;
  /** Its answer is being written. */
  readonly isAnswering: boolean;
}

/** An open connection whose address is known. */
export class OpenConnection {
  address: string;
  isShared = false;
  agent = "";
  expects = false;
  /** The request without an answer, if there is one: the connection is idle without it. */
  request: ConnectionOfRequest | undefined = undefined;
  /** Grows with each use of any connection. */
  usedAt = 0;
  /** The connection must be closed once its client has acknowledged everything that was sent. */
  closesWhenRead = false;
  /** Undefined once the connection is closed: its response must not be touched after that. */
  holder: Holder | undefined = undefined;
  readonly response: { close(): unknown };
  readonly #uses: Uses;

  constructor(address: string, response: { close(): unknown }, uses: Uses) {
    this.address = address;
    this.response = response;
    this.#uses = uses;
    this.usedAt = uses.count++;
  }

  get isIdle(): boolean {
    return this.request === undefined;
  }

  get isAnswering(): boolean {
    return this.request?.isAnswering === true;
  }

  /** Called when the request has its answer, or its client has left. */
  requestEnded(): void {
    this.request = undefined;
    this.usedAt = this.#uses.count++;
  }

  close(): void {
    this.response.close();
  }
}

interface Uses {
  count: number;
}

/** The connections of one address, or of one /64. */
class Holder {
  count = 0;
  readonly connections = new Set<OpenConnection>();
  readonly site: Site;
  readonly key: string;
  /** The least recently used idle connections, the oldest last. */
  #oldest: { readonly connection: OpenConnection; readonly usedAt: number }[] = [];

  constructor(key: string, site: Site) {
    this.key = key;
    this.site = site;
  }

  /** Returns the least recently used idle connection. */
  oldestIdle(): OpenConnection | undefined {
    const isStill = (connection: OpenConnection): boolean =>
      connection.isIdle && connection.holder === this;
    for (const isFresh of [false, true]) {
      if (isFresh)
        this.#oldest = [...this.connections]
          .filter(isStill)
          .sort((one, other) => one.usedAt - other.usedAt)
          .slice(0, oldestAtATime)
          .reverse()
          .map((connection) => ({ connection, usedAt: connection.usedAt }));
      for (let next = this.#oldest.pop(); next !== undefined; next = this.#oldest.pop())
        if (next.connection.usedAt === next.usedAt && isStill(next.connection))
          return next.connection;
    }
    return undefined;
  }

  /** Returns the connection that has waited longest for the rest of a body. */
  oldestReceiving(): OpenConnection | undefined {
    let oldest: OpenConnection | undefined;
    for (const connection of this.connections)
      if (connection.request?.isReceiving && !(oldest && oldest.usedAt < connection.usedAt))
        oldest = connection;
    return oldest;
  }
}

/** The holders of one address, or of one /48. */
class Site {
  count = 0;
  readonly key: string;
  readonly holders = new Ranking<Holder>();
  /** The ranking that contains the site: clients or proxies. */
  readonly ranking: Ranking<Site>;

  constructor(key: string, ranking: Ranking<Site>) {
    this.key = key;
    this.ranking = ranking;
  }
}

/** Tracks which of its items has the highest count. */
class Ranking<Item extends { count: number }> {
  readonly #byCount = new Map<number, Set<Item>>();
  #most = 0;

  get largest(): Item | undefined {
    return this.#byCount.get(this.#most)?.values().next().value;
  }

  change(item: Item, change: number): void {
    const before = this.#byCount.get(item.count);
    before?.delete(item);
    if (before?.size === 0) this.#byCount.delete(item.count);
    item.count += change;
    if (item.count > 0) {
      const same = this.#byCount.get(item.count) ?? new Set();
      this.#byCount.set(item.count, same.add(item));
    }
    this.#most = Math.max(this.#most, item.count);
    while (this.#most > 0 && !this.#byCount.has(this.#most)) this.#most--;
  }
}

export class ConnectionLimits {
  readonly #options: ConnectionLimitsOptions;
  readonly #uses: Uses = { count: 0 };
  /** Only an address, or a network, with open connections has an entry. */
  readonly #holders = new Map<string, Holder>();
  readonly #sites = new Map<string, Site>();
  readonly #clients = new Ranking<Site>();
  /** A proxy's connections carry many clients: they are closed only if no client has any. */
  readonly #proxies = new Ranking<Site>();
  #open = 0;
  readonly #refused: Record<TooMany, number> = { total: 0, address: 0 };
  readonly #closed: Record<ClosedFor, number> = { newcomer: 0, idle: 0 };
  /** The values of `#uses` at the last sweeps, the newest last. */
  #usesAtSweeps: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #unreadTimer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLimitsOptions) {
    this.#options = options;
  }

  get open(): number {
    return this.#open;
  }

  get max(): number {
    return this.#options.connectionsMax;
  }

  /** How many connections were closed as they opened, by the exceeded limit. */
  get refused(): Readonly<Record<TooMany, number>> {
    return this.#refused;
  }

  /** How many open connections were closed early. */
  get closedEarly(): Readonly<Record<ClosedFor, number>> {
    return this.#closed;
  }

  connectionOf(address: string, response: { close(): unknown }): OpenConnection {
    return new OpenConnection(address, response, this.#uses);
  }

  /**
   * Counts a connection that opens; undefined if its address is not known. If the connection
   * exceeds a limit and no other can be closed instead, returns which limit: the caller must then
   * close it.
   */
  opened(connection: OpenConnection | undefined): TooMany | undefined {
    const { connectionsMax, addressConnectionsMax, isProxy } = this.#options;
    this.#open++;
    if (connection !== undefined) {
      const { count } = this.#hold(connection);
      if (count > addressConnectionsMax && !isProxy(connection.address))
        return this.#refuse("address");
    }
    if (this.#open > connectionsMax) {
      const victim = connection && this.#victimFor(connection);
      if (victim === undefined) return this.#refuse("total");
      this.#closed.newcomer++;
      victim.close();
    }
    if (this.#options.unread !== undefined)
      this.#unreadTimer ??= setInterval(() => this.#checkUnread(), checkMs).unref();
    if (this.#isBusy) this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref();
    return undefined;
  }

  /** Must be called once for each `opened`, with the same connection. */
  closed(connection: OpenConnection | undefined): void {
    this.#open--;
    if (connection !== undefined) this.#release(connection);
  }

  /** Counts the connection from now on for the client that its proxy has named. */
  moved(connection: OpenConnection, address: string): void {
    this.#release(connection);
    connection.address = address;
    this.#hold(connection);
  }

  /**
   * Gives up the limit per address: the addresses of connections that close are no longer known, so
   * counts by address would never decrease. The total limit remains.
   */
  forgetAddresses(): void {
    for (const { connections } of this.#holders.values())
      for (const connection of connections) this.#release(connection);
  }

  get #isBusy(): boolean {
    return this.#open >= this.#options.connectionsMax * busyShare;
  }

  #refuse(limit: TooMany): TooMany {
    this.#refused[limit]++;
    return limit;
  }

  #hold(connection: OpenConnection): Holder {
    const key = networkPrefixOf(connection.address, hostBytes);
    const holder = this.#holders.get(key) ?? new Holder(key, this.#siteOf(connection.address));
    this.#holders.set(key, holder);
    connection.holder = holder;
    holder.connections.add(connection);
    holder.site.holders.change(holder, 1);
    holder.site.ranking.change(holder.site, 1);
    return holder;
  }

  #siteOf(address: string): Site {
    const key = siteOf(address);
    const ranking = this.#options.isProxy(address) ? this.#proxies : this.#clients;
    const site = this.#sites.get(key) ?? new Site(key, ranking);
    this.#sites.set(key, site);
    return site;
  }

  #release(connection: OpenConnection): void {
    const { holder } = connection;
    if (holder === undefined) return;
    connection.holder = undefined;
    holder.connections.delete(connection);
    holder.site.holders.change(holder, -1);
    holder.site.ranking.change(holder.site, -1);
    if (holder.count === 0) this.#holders.delete(holder.key);
    if (holder.site.count === 0) this.#sites.delete(holder.site.key);
  }

  /**
   * Returns the oldest idle connection of the largest holder. If none is idle, returns the one that
   * has waited longest for the rest of a body: its client has no answer and retries. Proxies are
   * spared. Undefined if the newcomer's own address has as many connections: otherwise two floods
   * would alternate, and each of their clients would keep losing its connection.
   */
  #victimFor(newcomer: OpenConnection): OpenConnection | undefined {
    const own = newcomer.holder!;
    const site = (this.#clients.largest ?? this.#proxies.largest)!;
    const holder = site.holders.largest!;
    const isLarger =
      site === own.site
        ? holder.count > own.count
        : site.ranking !== own.site.ranking || site.count > own.site.count || own.site.count === 1;
    if (!isLarger) return undefined;
    const idle = holder.oldestIdle();
    if (idle !== undefined) return idle;
    const receiving = holder.oldestReceiving();
    return receiving && !this.#options.isProxy(receiving.address) ? receiving : undefined;
  }

  #checkUnread(): void {
    this.#options.unread?.check(this.#all(), this.#uses.count);
    if (this.#open > 0) return;
    clearInterval(this.#unreadTimer);
    this.#unreadTimer = undefined;
  }

  *#all(): Generator<OpenConnection, void, void> {
    for (const { connections } of this.#holders.values()) yield* connections;
  }

  /** Closes connections that have been idle for some sweeps, while most connections are in use. */
  #sweep(): void {
    if (!this.#isBusy) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#usesAtSweeps = [];
      return;
    }
    this.#usesAtSweeps.push(this.#uses.count);
    if (this.#usesAtSweeps.length <= idleSweeps) return;
    const idleBefore = this.#usesAtSweeps.shift()!;
    let left = sweptMax;
    for (const { connections } of [...this.#holders.values()])
      for (const connection of connections) {
        if (!connection.isIdle || connection.usedAt >= idleBefore) continue;
        // A proxy's own settings determine how long it keeps its connections open.
        if (this.#options.isProxy(connection.address)) break;
        if (left-- === 0) return;
        this.#closed.idle++;
        connection.close();
      }
  }
}
