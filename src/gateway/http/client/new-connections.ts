// Chooses the new connections that are read in one event loop iteration (a "turn"), because data
// that uWS has read cannot be delayed. Addresses take turns. Within an address, the oldest and the
// newest connection alternate, so that a connection need not wait until a flood has been read.

export interface NewConnection {
  pause(): void;
  resume(): void;
  close(): unknown;
}

/** Reading a connection takes 0.3 ms if its kernel buffer is full. */
export const readPerTurnMax = 16;
/**
 * Per turn, uSockets reads at most five connections that have no finished handshake, and it reads
 * the newest first. If more handshakes began per turn, older connections would wait until a flood
 * ends.
 */
const handshakesPerTurnMax = 1;
const handshakeMsPerTurn = 2.5;
const turnsPerHandshakeMax = 50;

export function handshakesPerTurn(signatureMs: number): number {
  const inTime = handshakeMsPerTurn / Math.max(signatureMs, 0.01);
  return Math.min(handshakesPerTurnMax, Math.max(inTime, 1 / turnsPerHandshakeMax));
}

interface Paused<Connection> {
  readonly id: number;
  readonly connection: Connection;
  readonly line: Line<Connection>;
  older: Paused<Connection> | undefined;
  newer: Paused<Connection> | undefined;
}

interface Line<Connection> {
  readonly address: string;
  oldest: Paused<Connection> | undefined;
  newest: Paused<Connection> | undefined;
  isNewestNext: boolean;
}

export class NewConnections<Connection extends NewConnection> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #lines = new Map<string, Line<Connection>>();
  readonly #paused = new Map<number, Paused<Connection>>();
  #perTurn = readPerTurnMax;
  #left = readPerTurnMax;
  #isTurnAwaited = false;

  constructor(nextTurn: (run: () => void) => void) {
    this.#nextTurn = nextTurn;
  }

  set perTurn(count: number) {
    this.#perTurn = count;
    this.#left = Math.min(this.#left, this.#leftMax);
  }

  get size(): number {
    return this.#paused.size;
  }

  /** `id` must differ from the ids of all open connections. */
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
