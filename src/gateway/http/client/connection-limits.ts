// Limits the open connections, in total and per address, because uWS uses a full core if no file
// descriptor is free. At the limit, a new connection replaces a connection of the address that has
// the most.

import { networkPrefixOf } from "../../../platform/base/addresses.ts";
import { checkMs, type UnreadAnswers } from "./unread-answers.ts";

interface ConnectionLimitsOptions {
  readonly connectionsMax: number;
  readonly addressConnectionsMax: number;
  readonly isProxy: (address: string) => boolean;
  readonly unread: Pick<UnreadAnswers, "check">;
}

type TooMany = "total" | "address";

type ClosedFor = "newcomer" | "idle";

const busyShare = 3 / 4;
const sweepMs = 1_000;
const idleSweeps = 5;
/** Closing this number of connections takes about 10 ms. */
const sweptMax = 1_000;
const oldestAtATime = 64;

const siteBytes = 6;
const hostBytes = 8;

export function siteOf(address: string): string {
  return networkPrefixOf(address, siteBytes);
}

interface ConnectionOfRequest {
  readonly isReceiving: boolean;
  readonly isAnswering: boolean;
}

export class OpenConnection {
  address: string;
  isShared = false;
  /** The last User-Agent that is short enough to be kept. */
  agent = "";
  /** Whether `agent` is a known bot, and the name of its client; undefined if not determined. */
  isBot: boolean | undefined = undefined;
  clientName: string | undefined = undefined;
  expects = false;
  request: ConnectionOfRequest | undefined = undefined;
  usedAt = 0;
  closesWhenRead = false;
  holder: Holder | undefined = undefined;
  readonly response: { close(): unknown };
  readonly #uses: Uses;

  constructor(address: string, response: { close(): unknown }, uses: Uses) {
    this.address = address;
    this.response = response;
    this.#uses = uses;
    this.usedAt = uses.count++;
  }

  setAgent(agent: string): void {
    this.agent = agent;
    this.isBot = undefined;
    this.clientName = undefined;
  }

  get isIdle(): boolean {
    return this.request === undefined;
  }

  get isAnswering(): boolean {
    return this.request?.isAnswering === true;
  }

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

/** The connections of one IPv4 address or one IPv6 /64 network. */
class Holder {
  count = 0;
  readonly connections = new Set<OpenConnection>();
  readonly site: Site;
  readonly key: string;
  #oldest: { readonly connection: OpenConnection; readonly usedAt: number }[] = [];

  constructor(key: string, site: Site) {
    this.key = key;
    this.site = site;
  }

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

  oldestReceiving(): OpenConnection | undefined {
    let oldest: OpenConnection | undefined;
    for (const connection of this.connections)
      if (connection.request?.isReceiving && !(oldest && oldest.usedAt < connection.usedAt))
        oldest = connection;
    return oldest;
  }
}

/** The holders of one IPv4 address or one IPv6 /48 network. */
class Site {
  count = 0;
  readonly key: string;
  readonly holders = new Ranking<Holder>();
  readonly ranking: Ranking<Site>;

  constructor(key: string, ranking: Ranking<Site>) {
    this.key = key;
    this.ranking = ranking;
  }
}

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
  readonly #holders = new Map<string, Holder>();
  readonly #sites = new Map<string, Site>();
  readonly #clients = new Ranking<Site>();
  readonly #proxies = new Ranking<Site>();
  #open = 0;
  readonly #refused: Record<TooMany, number> = { total: 0, address: 0 };
  readonly #closed: Record<ClosedFor, number> = { newcomer: 0, idle: 0 };
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

  get refused(): Readonly<Record<TooMany, number>> {
    return this.#refused;
  }

  get closedEarly(): Readonly<Record<ClosedFor, number>> {
    return this.#closed;
  }

  connectionOf(address: string, response: { close(): unknown }): OpenConnection {
    return new OpenConnection(address, response, this.#uses);
  }

  /**
   * Counts a new connection. If a limit is exceeded, this method either closes another connection,
   * or returns the limit. If it returns the limit, the caller must close the new connection.
   */
  opened(connection: OpenConnection): TooMany | undefined {
    const { connectionsMax, addressConnectionsMax, isProxy } = this.#options;
    this.#open++;
    const { count } = this.#hold(connection);
    if (count > addressConnectionsMax && !isProxy(connection.address))
      return this.#refuse("address");
    if (this.#open > connectionsMax) {
      const victim = this.#victimFor(connection);
      if (victim === undefined) return this.#refuse("total");
      this.#closed.newcomer++;
      victim.close();
    }
    this.#unreadTimer ??= setInterval(() => this.#checkUnread(), checkMs).unref();
    if (this.#isBusy) this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref();
    return undefined;
  }

  /** Call this exactly once for each call of `opened`. */
  closed(connection: OpenConnection): void {
    this.#open--;
    this.#release(connection);
  }

  moved(connection: OpenConnection, address: string): void {
    this.#release(connection);
    connection.address = address;
    this.#hold(connection);
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
   * Returns the connection to close. It belongs to the address that has the most connections. The
   * oldest idle connection is chosen, or else the one that has waited longest for a body. Returns
   * undefined if the address of the new connection has as many connections. Otherwise, two floods
   * would keep replacing each other's connections.
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
    this.#options.unread.check(this.#all(), this.#uses.count);
    if (this.#open > 0) return;
    clearInterval(this.#unreadTimer);
    this.#unreadTimer = undefined;
  }

  *#all(): Generator<OpenConnection, void, void> {
    for (const { connections } of this.#holders.values()) yield* connections;
  }

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
        if (this.#options.isProxy(connection.address)) break;
        if (left-- === 0) return;
        this.#closed.idle++;
        connection.close();
      }
  }
}
