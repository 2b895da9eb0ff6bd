// Holds one entry per open connection, with its address. The address is read once, because a read
// through uWS allocates an ArrayBuffer, which takes longer than routing a request.

import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import type { NewConnection, NewConnections } from "./new-connections.ts";

interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  /**
   * Reads the address from the response itself: once per connection. If connections cannot be
   * identified: at every request, or never if `atFirstRequest` is set.
   */
  readonly read: (response: Response) => string;
  /**
   * Returns the address from the connection's first request on; called at that request with the
   * address at which it opened. A connection that cannot be identified then has the address "".
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once if connections cannot be identified any more. */
  readonly distrusted?: (() => void) | undefined;
  /** Default: no limit. */
  readonly limits?: ConnectionLimits | undefined;
  readonly opening?: NewConnections<Response> | undefined;
}

export class ConnectionAddresses<Response extends NewConnection> {
  readonly #options: ConnectionAddressesOptions<Response>;
  readonly #limits: ConnectionLimits;
  readonly #connections = new Map<number, OpenConnection>();
  /** The connections that have not sent a request yet. */
  readonly #silent = new Set<number>();
  #isTrusted = true;
  #wasFirst = false;
  #last: OpenConnection | undefined;

  constructor(options: ConnectionAddressesOptions<Response>) {
    this.#options = options;
    this.#limits = options.limits ?? noLimits();
  }

  /** The connection of the last call of `of`; undefined if it is unknown. */
  get connection(): OpenConnection | undefined {
    return this.#last;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Whether the last call of `of` was for a known connection's first request. */
  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  get isShared(): boolean | undefined {
    return this.#last?.isShared;
  }

  get agent(): string {
    return this.#last?.agent ?? "";
  }

  get expects(): boolean {
    return this.#last?.expects ?? false;
  }

  noteExpects(): void {
    if (this.#last !== undefined) this.#last.expects = true;
  }

  noteShared(): void {
    if (this.#last !== undefined) this.#last.isShared = true;
  }

  noteAgent(agent: string): void {
    if (this.#last !== undefined) this.#last.agent = agent;
  }

  /** For uWS's filter. `change` is above 0 when the connection opens, below 0 when it closes. */
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
      // The earlier connection may have closed without a report, and must not be touched.
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
    // The set is usually empty, which saves the look-up.
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

  /** Called if two open connections had the same id: an address could be another client's. */
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
