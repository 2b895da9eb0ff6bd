// What is between the nodes of a cluster, and between the gateway and each of them: any two can be
// cut off from each other, both ways or one. There are two of the kind: network namespaces, where
// packets are lost as on a real network, and TCP proxies, which any user may have. Must not decide
// what is cut: the scenario does.

export const networkKinds = ["namespaces", "proxies"] as const;
export type NetworkKind = (typeof networkKinds)[number];

/** A node by its number, or the gateway. */
export type End = number | "gateway";

/**
 * - `silent`: nothing passes and no connection ends; what was said arrives when the cut is healed.
 * - `reset`: connections end, and none can be opened.
 * - `one-way`: nothing passes from the first to the second.
 */
export type Cut = "silent" | "reset" | "one-way";

export interface ClusterNetwork {
  cut(from: End, to: End, how: Cut): void;
  /** Between each of these and every other. */
  isolate(ends: readonly End[], how: Cut): void;
  /**
   * Between the first and each of these bytes pass this late, and no faster than so many a second
   * each way. Answers, in words, what of it there is.
   */
  slow(
    from: End,
    to: readonly End[],
    speed: { readonly delayMs: number; readonly bytesPerSecond: number },
  ): string;
  /**
   * Everything passes again. `lost`: connections end, with what they held, as when a middlebox has
   * forgotten them. Answers for how many milliseconds from now on what was held back may still be
   * on its way.
   */
  heal(options?: { readonly lost?: boolean }): number;
  close(): Promise<void>;
}

/** Where a process runs, and how it is found. */
export interface Place {
  /** Goes before its own command line. */
  readonly command: readonly string[];
  /** Its address for whoever runs the scenario: nothing cuts that way. */
  readonly host: string;
  /** Its address for the other ends. */
  readonly innerHost: string;
}

/** Among the processes of this host. */
export const here: Place = { command: [], host: "127.0.0.1", innerHost: "127.0.0.1" };

export interface NetworkOfNodes extends ClusterNetwork {
  placeOf(end: End): Place;
  /** Where a node dials another. */
  routeUrl(from: number, to: number): string;
  /** Where the gateway finds the nodes; their ports are known only when they have started. */
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}
