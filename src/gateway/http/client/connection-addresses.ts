// Holds one entry per open connection, with its address. The address is read once, when the
// connection opens, because each reading of uWS allocates an ArrayBuffer, which costs more than
// routing a request. Closes connections over a limit. Does not handle requests.

import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import type { NewConnection, NewConnections } from "./new-connections.ts";

interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  /**
   * Reads the address from the response itself, once when its connection opens. For connections
   * that cannot be identified it is called at every request, or never if there is `atFirstRequest`.
   */
  readonly read: (response: Response) => string;
  /**
   * Called at a connection's first request, with the address at which the connection opened.
   * Returns its address from then on. Never called for connections that cannot be identified: with
   * `atFirstRequest` their address is "", because the address at which they opened is not their
   * client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once, when connections turn out to be no longer identifiable. */
  readonly distrusted?: (() => void) | undefined;
  /** Default: no limit. */
  readonly limits?: ConnectionLimits | undefined;
  /** Limits how many connections that open at the same time are read per turn. */
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

  /** The connection of the request of the last call of `of`; undefined if it is not known. */
  get connection(): OpenConnection | undefined {
    return this.#last;
  }

  /** The number of stored addresses. */
  get size(): number {
    return this.#connections.size;
  }

  /**
   * Whether the request of the last call of `of` was its connection's first. False if connections
   * cannot be identified.
   */
  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  /**
   * Whether the connection of that request belongs to a proxy, which forwards the requests of many
   * clients; undefined if connections cannot be identified.
   */
  get isShared(): boolean | undefined {
    return this.#last?.isShared;
  }

  /** The client name that was last set for the connection of that request, "" for none. */
  get agent(): string {
    return this.#last?.agent ?? "";
  }

  /** Whether a request of that connection has had an Expect header. */
  get expects(): boolean {
    return this.#last?.expects ?? false;
  }

  noteExpects(): void {
    if (this.#last !== undefined) this.#last.expects = true;
  }

  /** Records that the connection of that request carries the requests of many clients. */
  noteShared(): void {
    if (this.#last !== undefined) this.#last.isShared = true;
  }

  /** Sets the client name of that connection: some characters, held as long as the connection. */
  noteAgent(agent: string): void {
    if (this.#last !== undefined) this.#last.agent = agent;
  }

  /**
   * Called by uWS's filter: `change` is above 0 when the response's connection opens, below when it
   * closes.
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
      // The earlier connection with this id may be gone without a report, and must not be touched.
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

  /**
   * Returns the address of the connection that the response belongs to. Must be called once with
   * every request.
   */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest } = this.#options;
    const id = connectionId(response);
    // If connections are reused the set is mostly empty, which saves the look-up.
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
   * Removes all connections, because two open ones had the same id. The id then identifies no
   * connection, and an address found by it could be another client's.
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
