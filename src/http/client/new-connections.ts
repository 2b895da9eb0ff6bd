// Decides which new connections are read in one turn of the event loop. Once a connection is being
// read, nobody can hold back what comes first on it: a head, and with it as much of a body as the
// kernel has. So where many connections open at once, only some are read in each turn, and their
// addresses take turns. Knows nothing of requests.

export interface NewConnection {
  pause(): void;
  resume(): void;
}

/**
 * At most this many new connections are read in one turn, each in some 0.3 ms where all bring as
 * much as the kernel takes before anybody reads.
 */
export const readPerTurnMax = 16;

export class NewConnections<Connection extends NewConnection> {
  readonly #nextTurn: (run: () => void) => void;
  /**
   * The paused connections by address; the address that has waited longest for its turn is first.
   */
  readonly #waiting = new Map<string, Map<number, Connection>>();
  readonly #addresses = new Map<number, string>();
  #left = readPerTurnMax;
  #isTurnAwaited = false;

  constructor(nextTurn: (run: () => void) => void) {
    this.#nextTurn = nextTurn;
  }

  /** How many new connections are paused, and not read yet. */
  get size(): number {
    return this.#addresses.size;
  }

  /**
   * `id` belongs to no other open connection. Pauses the connection if this turn has had its share.
   */
  opened(connection: Connection, { id, address }: { id: number; address: string }): void {
    this.#awaitTurn();
    if (this.#left > 0) {
      this.#left--;
      return;
    }
    connection.pause();
    this.#addresses.set(id, address);
    const ofAddress = this.#waiting.get(address);
    if (ofAddress === undefined) this.#waiting.set(address, new Map([[id, connection]]));
    else ofAddress.set(id, connection);
  }

  /** Forgets the connection, which is not touched any more. */
  closed(id: number): void {
    const address = this.#addresses.get(id);
    if (address === undefined) return;
    this.#addresses.delete(id);
    const ofAddress = this.#waiting.get(address)!;
    ofAddress.delete(id);
    if (ofAddress.size === 0) this.#waiting.delete(address);
  }

  /** Has all paused connections read now: `closed` will not tell any more which of them close. */
  letGo(): void {
    for (const ofAddress of this.#waiting.values()) {
      for (const connection of ofAddress.values()) connection.resume();
    }
    this.#waiting.clear();
    this.#addresses.clear();
  }

  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#nextTurn(() => this.#turn());
  }

  #turn(): void {
    this.#isTurnAwaited = false;
    for (this.#left = readPerTurnMax; this.#left > 0 && this.#waiting.size > 0; this.#left--) {
      const [address, ofAddress] = this.#waiting.entries().next().value!;
      const [id, connection] = ofAddress.entries().next().value!;
      this.closed(id);
      if (this.#waiting.delete(address)) this.#waiting.set(address, ofAddress);
      connection.resume();
    }
    if (this.#left < readPerTurnMax) this.#awaitTurn();
  }
}
