// The addresses of the open connections, each read once, when it opens: uWS makes an ArrayBuffer of
// its own for every reading, which costs a request more than its routing. Holds one entry an open
// connection; closes those that are one too many; knows nothing of requests.

import type { ConnectionId } from "./connection-id.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import type { NewConnection, NewConnections } from "./new-connections.ts";

export interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  /**
   * Asks the response itself; without `atFirstRequest`, at every request for connections that
   * cannot be told apart.
   */
  readonly read: (response: Response) => string;
  /**
   * Says what the address is from a connection's first request on, given the one it opened with. It
   * is asked at that request only, and never for connections that cannot be told apart: these have
   * the address "" then, for the one they opened with is not their client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once, when connections turn out not to be told apart any more. */
  readonly distrusted?: (() => void) | undefined;
  readonly limits?: ConnectionLimits | undefined;
  /** Has those that open at once be read in turn. */
  readonly opening?: NewConnections<Response> | undefined;
  /** Ends the connection of a response that is one too many. */
  readonly close?: ((response: Response) => void) | undefined;
}

interface Held {
  /** The address that the connection opened with: the limits count by it. */
  readonly peer: string;
  address: string;
  isShared: boolean;
  agent: string;
}

export class ConnectionAddresses<Response extends NewConnection> {
  readonly #options: ConnectionAddressesOptions<Response>;
  readonly #connections = new Map<number, Held>();
  /** Those that have not sent a request yet. */
  readonly #silent = new Set<number>();
  #isTrusted = true;
  #wasFirst = false;
  #last: Held | undefined;

  constructor(options: ConnectionAddressesOptions<Response>) {
    this.#options = options;
  }

  /** Addresses held. */
  get size(): number {
    return this.#connections.size;
  }

  /**
   * Whether the request that was last asked about was its connection's first. False where
   * connections cannot be told apart.
   */
  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  /**
   * Whether its connection is one that brings the requests of others; undefined where connections
   * cannot be told apart.
   */
  get isShared(): boolean | undefined {
    return this.#last?.isShared;
  }

  /** What was noted last of its connection's client, "" for nothing. */
  get agent(): string {
    return this.#last?.agent ?? "";
  }

  /** Notes that its connection brings the requests of others. */
  noteShared(): void {
    if (this.#last !== undefined) this.#last.isShared = true;
  }

  /**
   * Notes who the client of its connection is, by its own word: some characters, held as long as
   * the connection.
   */
  noteAgent(agent: string): void {
    if (this.#last !== undefined) this.#last.agent = agent;
  }

  /**
   * Is called by uWS's filter: `change` is above 0 when the response's connection opens, below when
   * it closes.
   */
  follow(response: Response, change: number): void {
    const { connectionId, read, limits, opening, close } = this.#options;
    const id = this.#isTrusted ? connectionId(response) : 0;
    if (change < 0) {
      const held = this.#connections.get(id);
      this.#connections.delete(id);
      this.#silent.delete(id);
      opening?.closed(id);
      limits?.closed(held?.peer);
      return;
    }
    if (this.#connections.has(id)) {
      // The one that had the id may be gone without a word, and must not be touched.
      opening?.closed(id);
      this.#distrust();
    }
    const peer = this.#isTrusted && id !== 0 ? read(response) : undefined;
    if (peer !== undefined) {
      this.#connections.set(id, { peer, address: peer, isShared: false, agent: "" });
      this.#silent.add(id);
    }
    // Closing calls this again, for a connection that closes.
    if (limits?.opened(peer) !== undefined) close?.(response);
    else if (peer !== undefined) opening?.opened(response, { id, address: peer });
  }

  /**
   * Returns the address of the connection that the response belongs to. To be called once with
   * every request.
   */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest } = this.#options;
    const id = connectionId(response);
    // On connections that are used again there is mostly nobody in the set, and nothing to look up.
    this.#wasFirst = this.#silent.size > 0 && this.#silent.delete(id);
    const held = this.#connections.get(id);
    this.#last = held;
    if (held === undefined) return atFirstRequest === undefined ? read(response) : "";
    if (this.#wasFirst && atFirstRequest !== undefined)
      held.address = atFirstRequest(response, held.address);
    return held.address;
  }

  /**
   * Forgets all connections, because two open ones had one id: it is no identity, and an address by
   * it could be another client's.
   */
  #distrust(): void {
    this.#isTrusted = false;
    this.#connections.clear();
    this.#silent.clear();
    this.#options.limits?.forgetAddresses();
    this.#options.opening?.letGo();
    this.#options.distrusted?.();
  }
}
