// The addresses of the open connections, each read once, when it opens: uWS makes an ArrayBuffer of its own for every
// reading, which costs a request more than its routing. Holds one entry an open connection; knows nothing of requests.

import type { ConnectionId } from "./connection-id.ts";

export interface ConnectionAddresses<Response extends object> {
  /** What uWS's filter calls: `change` is above 0 when the response's connection opens, below when it closes. */
  follow(response: Response, change: number): void;
  /** The address of the connection that the response belongs to. */
  of(response: Response): string;
  /** Addresses held. */
  readonly size: number;
}

export interface ConnectionAddressesOptions<Response extends object> {
  readonly connectionId: ConnectionId;
  /** Asks the response itself; without `atFirstRequest`, at every request for connections that cannot be told apart. */
  readonly read: (response: Response) => string;
  /**
   * What the address is to be from a connection's first request on, given the one it opened with. Asked at that request
   * only, so `of` has to be called with every request; never asked for connections that cannot be told apart: with it
   * they have the address "", for the one they opened with is not their client's.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  /** Called once, when connections turn out not to be told apart any more. */
  readonly distrusted?: (() => void) | undefined;
}

export function createConnectionAddresses<Response extends object>({
  connectionId,
  read,
  atFirstRequest,
  distrusted,
}: ConnectionAddressesOptions<Response>): ConnectionAddresses<Response> {
  const addresses = new Map<number, string>();
  const silent = new Set<number>();
  let isTrusted = true;
  return {
    follow,
    of: atFirstRequest === undefined ? (response) => addresses.get(connectionId(response)) ?? read(response) : settled,
    get size() {
      return addresses.size;
    },
  };

  function follow(response: Response, change: number): void {
    if (!isTrusted) return;
    const id = connectionId(response);
    if (change < 0) {
      addresses.delete(id);
      silent.delete(id);
    } else if (addresses.has(id)) {
      // Two open connections with one id: it is not an identity, and an address by it could be another client's.
      isTrusted = false;
      addresses.clear();
      silent.clear();
      distrusted?.();
    } else if (id !== 0) {
      addresses.set(id, read(response));
      if (atFirstRequest !== undefined) silent.add(id);
    }
  }

  function settled(response: Response): string {
    const id = connectionId(response);
    const address = addresses.get(id);
    if (address === undefined) return "";
    if (atFirstRequest === undefined || !silent.delete(id)) return address;
    const changed = atFirstRequest(response, address);
    addresses.set(id, changed);
    return changed;
  }
}
