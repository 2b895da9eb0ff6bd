// Holds one entry for each open connection, with its address. The address is read once, when the
// connection opens: uWS makes an ArrayBuffer of its own for every reading, which costs a request
// more than its routing. Closes connections over a limit. Knows nothing of requests.

import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import type { NewConnection, NewConnections } from "./new-connections.ts";

interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  /**
   * Reads the address off the response itself, once when its connection opens. For connections that
   * cannot be told apart it is called at every request, or never if there is `atFirstRequest`.
   */
  readonly read: (response: Response) => string;
  /**
   * Called at a connection's first request, with the address that the connection opened with.
   * Returns the address it has from then on. Never called for connections that cannot be told
   * apart: with `atFirstRequest` their address is "", for the one they opened with is not their
   * client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once, when it turns out that connections cannot be told apart any more. */
  readonly distrusted?: (() => void) | undefined;
  /** No limit unless given. */
  readonly limits?: ConnectionLimits | undefined;
  /** Has connections that open at the same time be read in turn. */
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

  /** The connection of the request that `of` was last called for; undefined if it is not known. */
  get connection(): OpenConnection | undefined {
    return this.#last;
  }

  /** How many addresses are held. */
  get size(): number {
    return this.#connections.size;
  }

  /**
   * Whether the request that `of` was last called for was its connection's first. False where
   * connections cannot be told apart.
   */
  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  /**
   * Whether the connection of that request is a proxy's, which brings the requests of many clients;
   * undefined where connections cannot be told apart.
   */
  get isShared(): boolean | undefined {
    return this.#last?.isShared;
  }

  /** The name last noted for the connection of that request, "" for none. */
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

  /** Notes that the connection of that request brings the requests of many clients. */
  noteShared(): void {
    if (this.#last !== undefined) this.#last.isShared = true;
  }

  /**
   * Notes the name that the client of that connection gives itself: some characters, held as long
   * as the connection.
   */
  noteAgent(agent: string): void {
    if (this.#last !== undefined) this.#last.agent = agent;
  }

  /**
   * Is called by uWS's filter: `change` is above 0 when the response's connection opens, below when
   * it closes.
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
      // The earlier connection with this id may be gone without a word, and must not be touched.
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
   * Returns the address of the connection that the response belongs to. To be called once with
   * every request.
   */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest } = this.#options;
    const id = connectionId(response);
    // Where connections are used again the set is mostly empty, and nothing has to be looked up.
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
   * Forgets all connections, because two open ones had one id. The id then identifies no
   * connection, and an address found by it could be another client's.
   */
  #distrust(): void {
    this.#isTrusted = false;
    this.#connections.clear();
    this.#silent.clear();
    this.#limits.forgetAddresses();
    this.#options.opening?.letGo();
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
