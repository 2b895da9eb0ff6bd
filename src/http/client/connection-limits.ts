// Limits how many connections may be open, in all and from one address, so that the process keeps
// descriptors for NATS, files and the admin port: out of descriptors, the HTTP library spins on its
// listening socket and nothing else can be opened. Counts only: the caller reads addresses, and
// closes connections that are over a limit.

import { networkPrefixOf } from "../../base/addresses.ts";

interface ConnectionLimitsOptions {
  readonly connectionsMax: number;
  readonly addressConnectionsMax: number;
  /**
   * Whether the address is a proxy's. Proxies bring the connections of many clients, so only the
   * limit in all holds for them.
   */
  readonly isProxy: (address: string) => boolean;
}

/** The limit that a connection is over: `total` of the process, or `address` of its peer. */
type TooMany = "total" | "address";

export class ConnectionLimits {
  readonly #options: ConnectionLimitsOptions;
  /**
   * Open connections by address; for IPv6 by /64 network, since a client has all addresses of one.
   * Only an address with open connections has an entry.
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

  /** How many connections were closed as they opened, by the limit they were over. */
  get refused(): Readonly<Record<TooMany, number>> {
    return { total: this.#refusedTotal, address: this.#refusedAddress };
  }

  /**
   * Counts a connection that opens; its address may be unknown. If the connection is over a limit,
   * returns which: it is then to be closed.
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
   * Gives up the limit of each address: the addresses of connections that close are not known any
   * more, so counts by address would never go down. The limit in all stays.
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
