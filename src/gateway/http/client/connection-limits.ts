// Limits how many connections may be open, in all and from one address, so that the process keeps
// descriptors for NATS, files and the admin port: out of descriptors, the HTTP library spins on its
// listening socket and nothing else can be opened. When all are in use, a new connection takes the
// place of one of the address that holds most, so that a few addresses cannot keep others out.

import { networkPrefixOf } from "../../../platform/base/addresses.ts";
import { checkMs, type UnreadAnswers } from "./unread-answers.ts";

interface ConnectionLimitsOptions {
  readonly connectionsMax: number;
  readonly addressConnectionsMax: number;
  /** Whether the address is a proxy's. Proxies bring the connections of many clients. */
  readonly isProxy: (address: string) => boolean;
  /** Follows what clients do not read, if the addon is there. */
  readonly unread?: UnreadAnswers | undefined;
}

/** The limit that a connection is over: `total` of the process, or `address` of its peer. */
type TooMany = "total" | "address";

/** Why an open connection was closed: for a new one, or because it was idle when many are open. */
type ClosedFor = "newcomer" | "idle";

/** From this share of all connections on, idle ones are closed early. */
const busyShare = 3 / 4;
const sweepMs = 1_000;
/** An idle connection is closed early after this many sweeps: 4 to 5 seconds. */
const idleSweeps = 5;
/** A sweep closes at most this many connections, in some 10 ms. */
const sweptMax = 1_000;
/** The oldest idle connections of an address are looked for this many at a time. */
const oldestAtATime = 64;

/** IPv6 is counted by /48, which is one site's, and within it by /64, which is one host's. */
const siteBytes = 6;
const hostBytes = 8;

/** Returns the address, of IPv6 the /48 around it. */
export function siteOf(address: string): string {
  return networkPrefixOf(address, siteBytes);
}

interface ConnectionOfRequest {
  /** The body of its request has not arrived whole. */
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
  /** The request that has no answer yet, if there is one: the connection is idle without it. */
  request: ConnectionOfRequest | undefined = undefined;
  /** Grows with each use of any connection. */
  usedAt = 0;
  /** The connection is to be closed once its client has acknowledged all that it was sent. */
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

  /** The request has its answer, or its client has left. */
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
  /** The idle connections that were used longest ago, the oldest last. */
  #oldest: { readonly connection: OpenConnection; readonly usedAt: number }[] = [];

  constructor(key: string, site: Site) {
    this.key = key;
    this.site = site;
  }

  /** Returns the idle connection that was used longest ago. */
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
  /** What the site is ranked among: clients or proxies. */
  readonly ranking: Ranking<Site>;

  constructor(key: string, ranking: Ranking<Site>) {
    this.key = key;
    this.ranking = ranking;
  }
}

/** Knows which of its items has the highest count. */
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
  /** A proxy's connections carry many clients: they make room only if no client holds any. */
  readonly #proxies = new Ranking<Site>();
  #open = 0;
  readonly #refused: Record<TooMany, number> = { total: 0, address: 0 };
  readonly #closed: Record<ClosedFor, number> = { newcomer: 0, idle: 0 };
  /** What `#uses` was at the last sweeps, the newest last. */
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

  /** How many connections were closed as they opened, by the limit they were over. */
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
   * Counts a connection that opens; undefined where its address is not known. If the connection is
   * over a limit and there is none to close in its place, returns which limit: it is then to be
   * closed.
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

  /** To be called once for each `opened`, with the same connection. */
  closed(connection: OpenConnection | undefined): void {
    this.#open--;
    if (connection !== undefined) this.#release(connection);
  }

  /** Counts the connection for the client that its proxy has named from here on. */
  moved(connection: OpenConnection, address: string): void {
    this.#release(connection);
    connection.address = address;
    this.#hold(connection);
  }

  /**
   * Gives up the limit of each address: the addresses of connections that close are not known any
   * more, so counts by address would never go down. The limit in all stays.
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
   * The oldest idle connection of the largest holder; if none is idle, the one that has waited
   * longest for the rest of a body: its client has no answer, and sends it again. Proxies are
   * spared. None if the newcomer's own address holds as many: two floods would otherwise take turns,
   * and each of their clients lose its connection all the time.
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

  /** Closes what has been idle for some sweeps, while most connections are in use. */
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
        // A proxy keeps its connections for as long as its own settings say.
        if (this.#options.isProxy(connection.address)) break;
        if (left-- === 0) return;
        this.#closed.idle++;
        connection.close();
      }
  }
}
