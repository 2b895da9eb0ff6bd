// Chooses the new connections that are read in one event loop iteration ("turn" below). Once a
// connection is being read, its first data cannot be held back: a head, and as much of a body as
// the kernel has. So if many connections open at once, only some are read in each turn. Addresses
// take turns, and the oldest and the newest connection of an address alternate. So a connection
// behind a proxy, or after a flood, need not wait for all that opened before it. Does not handle
// requests.

export interface NewConnection {
  pause(): void;
  resume(): void;
  close(): unknown;
}

/**
 * Maximum number of new connections that are read in one turn. A connection takes some 0.3 ms if it
 * delivers as much as the kernel buffers before the first read.
 */
export const readPerTurnMax = 16;
/**
 * Maximum number of new TLS connections that are read in one turn. uSockets reads five connections
 * without a finished handshake per turn, the newest waiting ones first: more than five would keep
 * others waiting until a flood ends. A connection that is closed in the middle of its handshake is
 * read two or three times: for the first flight, for the second after a HelloRetryRequest, and for
 * the end.
 */
const handshakesPerTurnMax = 1;
/**
 * Approximate milliseconds for the handshakes of one turn. A longer handshake gets several turns.
 */
const handshakeMsPerTurn = 2.5;
/** Maximum number of turns between two new TLS connections, however long a signature takes. */
const turnsPerHandshakeMax = 50;

/**
 * Returns the number of new TLS connections that may be read per turn, by the duration of one
 * signature. A number below 1 means one connection in several turns.
 */
export function handshakesPerTurn(signatureMs: number): number {
  const inTime = handshakeMsPerTurn / Math.max(signatureMs, 0.01);
  return Math.min(handshakesPerTurnMax, Math.max(inTime, 1 / turnsPerHandshakeMax));
}

/**
 * A paused connection, linked to the connections of its address that were opened before and after
 * it.
 */
interface Paused<Connection> {
  readonly id: number;
  readonly connection: Connection;
  readonly line: Line<Connection>;
  older: Paused<Connection> | undefined;
  newer: Paused<Connection> | undefined;
}

/** The paused connections of an address, at least one. */
interface Line<Connection> {
  readonly address: string;
  oldest: Paused<Connection> | undefined;
  newest: Paused<Connection> | undefined;
  isNewestNext: boolean;
}

export class NewConnections<Connection extends NewConnection> {
  readonly #nextTurn: (run: () => void) => void;
  /** The lines by address. The address that has waited longest for its turn is first. */
  readonly #lines = new Map<string, Line<Connection>>();
  readonly #paused = new Map<number, Paused<Connection>>();
  #perTurn = readPerTurnMax;
  #left = readPerTurnMax;
  #isTurnAwaited = false;

  constructor(nextTurn: (run: () => void) => void) {
    this.#nextTurn = nextTurn;
  }

  /**
   * Sets the number of connections that are read per turn from now on. A number below 1 means one
   * connection in several turns.
   */
  set perTurn(count: number) {
    this.#perTurn = count;
    this.#left = Math.min(this.#left, this.#leftMax);
  }

  /** Returns the number of new connections that are paused and have not been read. */
  get size(): number {
    return this.#paused.size;
  }

  /**
   * Pauses a new connection if this turn's limit is reached. `id` must belong to no other open
   * connection.
   */
  opened(connection: Connection, { id, address }: { id: number; address: string }): void {
    this.#awaitTurn();
    if (this.#left >= 1) {
      this.#left--;
      return;
    }
    connection.pause();
    const line = this.#lineOf(address);
    const paused = { connection, id, line, older: line.newest, newer: undefined };
    if (line.newest === undefined) line.oldest = paused;
    else line.newest.newer = paused;
    line.newest = paused;
    this.#paused.set(id, paused);
  }

  /** Removes the connection without touching it. */
  closed(id: number): void {
    const paused = this.#paused.get(id);
    if (paused === undefined) return;
    this.#paused.delete(id);
    const { line, older, newer } = paused;
    if (older === undefined) line.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) line.newest = older;
    else newer.older = older;
    if (line.oldest === undefined) this.#lines.delete(line.address);
  }

  /**
   * Resumes all paused connections; called when `closed` will no longer report the ones that close.
   */
  resumeAll(): void {
    for (const { connection } of this.#paused.values()) connection.resume();
    this.#paused.clear();
    this.#lines.clear();
  }

  #lineOf(address: string): Line<Connection> {
    const line = this.#lines.get(address) ?? newLine<Connection>(address);
    this.#lines.set(address, line);
    return line;
  }

  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#nextTurn(() => this.#turn());
  }

  get #leftMax(): number {
    return Math.max(this.#perTurn, 1);
  }

  #turn(): void {
    this.#isTurnAwaited = false;
    this.#left = Math.min(this.#left + this.#perTurn, this.#leftMax);
    for (; this.#left >= 1 && this.#lines.size > 0; this.#left--) {
      const line = this.#lines.values().next().value!;
      const { connection, id } = line.isNewestNext ? line.newest! : line.oldest!;
      line.isNewestNext = !line.isNewestNext;
      this.closed(id);
      if (this.#lines.delete(line.address)) this.#lines.set(line.address, line);
      connection.resume();
    }
    if (this.#left < this.#leftMax) this.#awaitTurn();
  }
}

function newLine<Connection>(address: string): Line<Connection> {
  return { address, oldest: undefined, newest: undefined, isNewestNext: false };
}
