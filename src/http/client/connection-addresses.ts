// The addresses of the open connections, each read once, when it opens: uWS makes an ArrayBuffer of
// its own for every reading, which costs a request more than its routing. Holds one entry an open
// connection; closes those that are one too many; knows nothing of requests.

import type { ConnectionId } from "./connection-id.ts";
import type { ConnectionLimits } from "./connection-limits.ts";

export interface ConnectionAddresses<Response extends object> {
  /**
   * What uWS's filter calls: `change` is above 0 when the response's connection opens, below when
   * it closes.
   */
  follow(response: Response, change: number): void;
  /**
   * The address of the connection that the response belongs to. To be called once with every
   * request.
   */
  of(response: Response): string;
  /**
   * Whether that request was its connection's first. False where connections cannot be told apart.
   */
  readonly wasFirst: boolean;
  /**
   * Whether its connection is one that brings the requests of others; undefined where connections
   * cannot be told apart.
   */
  readonly isShared: boolean | undefined;
  /** Notes that it is. */
  noteShared(): void;
  /** What was noted last of its connection's client, "" for nothing. */
  readonly agent: string;
  /**
   * Notes who the client of its connection is, by its own word: some characters, held as long as
   * the connection.
   */
  noteAgent(agent: string): void;
  /** Addresses held. */
  readonly size: number;
}

export interface ConnectionAddressesOptions<Response extends object> {
  readonly connectionId: ConnectionId;
  /**
   * Asks the response itself; without `atFirstRequest`, at every request for connections that
   * cannot be told apart.
   */
  readonly read: (response: Response) => string;
  /**
   * What the address is to be from a connection's first request on, given the one it opened with.
   * Asked at that request only; never asked for connections that cannot be told apart: with it they
   * have the address "", for the one they opened with is not their client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once, when connections turn out not to be told apart any more. */
  readonly distrusted?: (() => void) | undefined;
  readonly limits?: ConnectionLimits | undefined;
  /** Ends the connection of a response that is one too many. */
  readonly close?: ((response: Response) => void) | undefined;
}

interface Held {
  /** As it opened: what the limits count by. */
  readonly peer: string;
  address: string;
  isShared: boolean;
  agent: string;
}

export function createConnectionAddresses<Response extends object>({
  connectionId,
  read,
  atFirstRequest,
  distrusted,
  limits,
  close,
}: ConnectionAddressesOptions<Response>): ConnectionAddresses<Response> {
  const connections = new Map<number, Held>();
  /** Those that have not sent a request yet. */
  const silent = new Set<number>();
  let isTrusted = true;
  let wasFirst = false;
  let last: Held | undefined;
  return {
    follow,
    of,
    get wasFirst() {
      return wasFirst;
    },
    get isShared() {
      return last?.isShared;
    },
    noteShared() {
      if (last !== undefined) last.isShared = true;
    },
    get agent() {
      return last?.agent ?? "";
    },
    noteAgent(agent) {
      if (last !== undefined) last.agent = agent;
    },
    get size() {
      return connections.size;
    },
  };

  function follow(response: Response, change: number): void {
    const id = isTrusted ? connectionId(response) : 0;
    if (change < 0) {
      const held = connections.get(id);
      connections.delete(id);
      silent.delete(id);
      limits?.closed(held?.peer);
      return;
    }
    if (connections.has(id)) distrust();
    const peer = isTrusted && id !== 0 ? read(response) : undefined;
    if (peer !== undefined) {
      connections.set(id, { peer, address: peer, isShared: false, agent: "" });
      silent.add(id);
    }
    // Closing calls this again, for a connection that closes.
    if (limits?.opened(peer) !== undefined) close?.(response);
  }

  /**
   * Two open connections with one id: it is not an identity, and an address by it could be another
   * client's.
   */
  function distrust(): void {
    isTrusted = false;
    connections.clear();
    silent.clear();
    limits?.forgetAddresses();
    distrusted?.();
  }

  function of(response: Response): string {
    const id = connectionId(response);
    // On connections that are used again there is mostly nobody in the set, and nothing to look up.
    wasFirst = silent.size > 0 && silent.delete(id);
    const held = connections.get(id);
    last = held;
    if (held === undefined) return atFirstRequest === undefined ? read(response) : "";
    if (wasFirst && atFirstRequest !== undefined)
      held.address = atFirstRequest(response, held.address);
    return held.address;
  }
}
