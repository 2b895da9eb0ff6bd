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

/** `read` asks the response itself; it is asked at every request for connections that cannot be told apart. */
export function createConnectionAddresses<Response extends object>(
  connectionId: ConnectionId,
  read: (response: Response) => string,
): ConnectionAddresses<Response> {
  const addresses = new Map<number, string>();
  let isTrusted = true;
  return {
    follow,
    of: (response) => addresses.get(connectionId(response)) ?? read(response),
    get size() {
      return addresses.size;
    },
  };

  function follow(response: Response, change: number): void {
    if (!isTrusted) return;
    const id = connectionId(response);
    if (change < 0) {
      addresses.delete(id);
    } else if (addresses.has(id)) {
      // Two open connections with one id: it is not an identity, and an address by it could be another client's.
      isTrusted = false;
      addresses.clear();
    } else if (id !== 0) {
      addresses.set(id, read(response));
    }
  }
}
