// How many connections may be open, in all and from one address, so that the process keeps
// descriptors for NATS, files and the admin port: out of descriptors, the HTTP library spins on its
// listening socket and nothing else can be opened. Counts only; who closes what is over, and reads
// addresses, is the caller's.

import { networkPrefixOf } from "../../base/addresses.ts";

export interface ConnectionLimitsOptions {
  readonly connectionsMax: number;
  readonly addressConnectionsMax: number;
  /** Proxies bring the connections of many clients: only the limit in all holds for them. */
  readonly isProxy: (address: string) => boolean;
}

/** The limit that a connection is over: `total` of the process, or `address` of its peer. */
export type TooMany = "total" | "address";

export class ConnectionLimits {
  readonly #options: ConnectionLimitsOptions;
  /**
   * Counts by address; for IPv6 by /64 network, of which a client has all. There is one entry for
   * each that has connections.
   */
  readonly #byAddress = new Map<string, number>();
  #open = 0;
  #refusedTotal = 0;
  #refusedAddress = 0;

  constructor(options: ConnectionLimitsOptions) {
    this.#options = options;
  }

  get open(): number {
    return this.#open;
  }

  get max(): number {
    return this.#options.connectionsMax;
  }

  /** Connections closed as they opened, by reason. */
  get refused(): Readonly<Record<TooMany, number>> {
    return { total: this.#refusedTotal, address: this.#refusedAddress };
  }

  /**
   * Counts a connection that opens; its address may be unknown. Returns the limit that it is over,
   * if any, for which it is to be closed.
   */
  opened(address: string | undefined): TooMany | undefined {
    const { connectionsMax, addressConnectionsMax, isProxy } = this.#options;
    this.#open++;
    const ofAddress = this.#add(address, 1);
    if (this.#open > connectionsMax) {
      this.#refusedTotal++;
      return "total";
    }
    if (address === undefined || ofAddress <= addressConnectionsMax || isProxy(address))
      return undefined;
    this.#refusedAddress++;
    return "address";
  }

  /** To be called once for each `opened`, with the same address. */
  closed(address: string | undefined): void {
    this.#open--;
    this.#add(address, -1);
  }

  /**
   * Gives up the limit of each address, because addresses are not told any more when connections
   * close. The limit in all stays.
   */
  forgetAddresses(): void {
    this.#byAddress.clear();
  }

  #add(address: string | undefined, change: number): number {
    if (address === undefined) return 0;
    const network = networkPrefixOf(address);
    const count = (this.#byAddress.get(network) ?? 0) + change;
    if (count > 0) this.#byAddress.set(network, count);
    else this.#byAddress.delete(network);
    return count;
  }
}
