// The network between the nodes of a cluster and the gateway. Any two ends can be cut off from each
// other. The network consists of network namespaces, or of TCP proxies, which need no privileges.

export const networkKinds = ["namespaces", "proxies"] as const;
export type NetworkKind = (typeof networkKinds)[number];

export type End = number | "gateway";

/**
 * - `silent`: no data passes and no connection closes; the data arrives after the cut is healed.
 * - `reset`: connections close, and no connection can be opened.
 * - `one-way`: no data passes from the first end to the second.
 */
export type Cut = "silent" | "reset" | "one-way";

export interface ClusterNetwork {
  cut(from: End, to: End, how: Cut): void;
  isolate(ends: readonly End[], how: Cut): void;
  slow(
    from: End,
    to: readonly End[],
    speed: { readonly delayMs: number; readonly bytesPerSecond: number },
  ): string;
  /**
   * Ends all cuts. If `lost` is set, connections close and lose their data. Returns the maximum
   * delay in milliseconds of bytes that are still in transit.
   */
  heal(options?: { readonly lost?: boolean }): number;
  close(): Promise<void>;
}

export interface Place {
  readonly command: readonly string[];
  readonly host: string;
  readonly innerHost: string;
}

export const here: Place = { command: [], host: "127.0.0.1", innerHost: "127.0.0.1" };

export interface NetworkOfNodes extends ClusterNetwork {
  placeOf(end: End): Place;
  routeUrl(from: number, to: number): string;
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}
