// Holds one entry per open connection, with its address. The address is read once, when the
// connection opens, because each read through uWS allocates an ArrayBuffer, which takes longer than
// routing a request. Closes connections over a limit. Does not handle requests.

import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import type { NewConnection, NewConnections } from "./new-connections.ts";

interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  /**
   * Returns the address from the response itself; called once when its connection opens. For
   * connections that cannot be identified it is called at every request, or never if
   * `atFirstRequest` is set.
   */
  readonly read: (response: Response) => string;
  /**
   * Returns the address of a connection from its first request on; called at that request with the
   * address at which the connection opened. Never called for connections that cannot be identified.
   * With `atFirstRequest` the address of such a connection is "", because the address at which it
   * opened is not its client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Reports that connections cannot be identified any more; called once. */
  readonly distrusted?: (() => void) | undefined;
  /** Limits of open connections. Default: no limit. */
  readonly limits?: ConnectionLimits | undefined;
  /**
   * Limits the number of connections opened at the same time that are read per event loop
   * iteration.
   */
  readonly opening?: NewConnections<Response> | undefined;
}

export class ConnectionAddresses<Response extends NewConnection> {
  readonly #options: ConnectionAddressesOptions<Response>;
  readonly #limits: ConnectionLimits;
  readonly #connections = new Map<number, OpenConnection>();
  /** The ids of connections that have not sent a request yet. */
  readonly #silent = new Set<number>();
  #isTrusted = true;
  #wasFirst = false;
  #last: OpenConnection | undefined;

  constructor(options: ConnectionAddressesOptions<Response>) {
    this.#options = options;
    this.#limits = options.limits ?? noLimits();
  }

  /**
   * Returns the connection of the request of the last call of `of`; undefined if the connection is
   * unknown.
   */
  get connection(): OpenConnection | undefined {
    return this.#last;
  }

  get size(): number {
    return this.#connections.size;
  }

  /**
   * Returns whether the request of the last call of `of` was its connection's first. False if
   * connections cannot be identified.
   */
  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  /**
   * Returns whether the connection of the last call of `of` belongs to a proxy, which forwards the
   * requests of many clients. Undefined if connections cannot be identified.
   */
  get isShared(): boolean | undefined {
    return this.#last?.isShared;
  }

  /**
   * Returns the client name that was last set for the connection of the last call of `of`; "" for
   * no name.
   */
  get agent(): string {
    return this.#last?.agent ?? "";
  }

  /**
   * Returns whether a request of the connection of the last call of `of` has had an Expect header.
   */
  get expects(): boolean {
    return this.#last?.expects ?? false;
  }

  noteExpects(): void {
    if (this.#last !== undefined) this.#last.expects = true;
  }

  /** Records that the connection of the last call of `of` carries the requests of many clients. */
  noteShared(): void {
    if (this.#last !== undefined) this.#last.isShared = true;
  }

  /**
   * Sets the client name of the connection of the last call of `of`: some characters, held as long
   * as the connection.
   */
  noteAgent(agent: string): void {
    if (this.#last !== undefined) this.#last.agent = agent;
  }

  /**
   * Tracks a connection that opens or closes; called by uWS's filter. `change` is above 0 when the
   * response's connection opens, below 0 when it closes.
   */
  follow(response: Response, change: number): void {
    const { connectionId, read, opening } = this.#options;
    const limits = this.#limits;
    const id = this.#isTrusted ? connectionId(response) : 0;
    if (change < 0) {
      const closed = this.#connections.get(id);
      this.#connections.delete(id);
      this.#silent.delete(id);
      opening?.closed(id);
      limits.closed(closed);
      return;
    }
    if (this.#connections.has(id)) {
      // The earlier connection with this id may have closed without a report, and must not be
      // touched.
      opening?.closed(id);
      this.#distrust();
    }
    const isKnown = this.#isTrusted && id !== 0;
    const connection = isKnown ? limits.connectionOf(read(response), response) : undefined;
    if (connection !== undefined) {
      this.#connections.set(id, connection);
      this.#silent.add(id);
    }
    // `close` calls `follow` again, for the connection that it closes.
    if (limits.opened(connection) !== undefined) response.close();
    else if (connection !== undefined)
      opening?.opened(response, { id, address: siteOf(connection.address) });
  }

  /** Returns the address of the response's connection. Must be called once with every request. */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest } = this.#options;
    const id = connectionId(response);
    // If connections are reused, the set is usually empty, which saves the look-up.
    this.#wasFirst = this.#silent.size > 0 && this.#silent.delete(id);
    const held = this.#connections.get(id);
    this.#last = held;
    if (held === undefined) return atFirstRequest === undefined ? read(response) : "";
    if (this.#wasFirst && atFirstRequest !== undefined) {
      const address = atFirstRequest(response, held.address);
      if (address !== held.address) this.#limits.moved(held, address);
    }
    return held.address;
  }

  /**
   * Removes all connections, because two open connections had the same id. The id then identifies
   * no connection, and an address found by the id could be another client's.
   */
  #distrust(): void {
    this.#isTrusted = false;
    this.#connections.clear();
    this.#silent.clear();
    this.#limits.forgetAddresses();
    this.#options.opening?.resumeAll();
    this.#options.distrusted?.();
  }
}

function noLimits(): ConnectionLimits {
  const none = Number.POSITIVE_INFINITY;
  return new ConnectionLimits({
    connectionsMax: none,
    addressConnectionsMax: none,
    isProxy: () => false,
  });
}
