// The network between the nodes of a cluster and the gateway, in which any two can be cut off from
// each other. It consists of network namespaces, which lose packets, or of TCP proxies, which need
// no privileges.

export const networkKinds = ["namespaces", "proxies"] as const;
export type NetworkKind = (typeof networkKinds)[number];

export type End = number | "gateway";

/**
 * - `silent`: nothing passes and no connection closes; the data arrives when the cut is healed.
 * - `reset`: connections close, and none can be opened.
 * - `one-way`: nothing passes from the first to the second.
 */
export type Cut = "silent" | "reset" | "one-way";

export interface ClusterNetwork {
  cut(from: End, to: End, how: Cut): void;
  /** Cuts each of these ends off from every other end. */
  isolate(ends: readonly End[], how: Cut): void;
  /**
   * Slows the paths between the first end and the others. Returns in words how slow this network
   * makes them.
   */
  slow(
    from: End,
    to: readonly End[],
    speed: { readonly delayMs: number; readonly bytesPerSecond: number },
  ): string;
  /**
   * Ends all cuts: everything passes again. If `lost` is set, connections close and lose their
   * data, as when a middlebox has forgotten them. Returns the number of milliseconds for which
   * delayed bytes may still arrive.
   */
  heal(options?: { readonly lost?: boolean }): number;
  close(): Promise<void>;
}

export interface Place {
  /** Prefix of the process's own command line. */
  readonly command: readonly string[];
  /**
   * The address at which the scenario's own process reaches this process. No cut affects that path.
   */
  readonly host: string;
  readonly innerHost: string;
}

export const here: Place = { command: [], host: "127.0.0.1", innerHost: "127.0.0.1" };

export interface NetworkOfNodes extends ClusterNetwork {
  placeOf(end: End): Place;
  routeUrl(from: number, to: number): string;
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}
