// The network between the nodes of a cluster, and between the gateway and each of them: any two can
// be cut off from each other, both ways or one. There are two kinds: network namespaces, which lose
// packets as a real network does, and TCP proxies, which any user may run. Must not decide what is
// cut: the scenario does.

export const networkKinds = ["namespaces", "proxies"] as const;
export type NetworkKind = (typeof networkKinds)[number];

/** One end of a network path: a node by its number, or the gateway. */
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
   * Slows the paths between the first end and each of the others: bytes are delayed, and limited
   * per second in each direction. Returns a description of what this network supports.
   */
  slow(
    from: End,
    to: readonly End[],
    speed: { readonly delayMs: number; readonly bytesPerSecond: number },
  ): string;
  /**
   * Ends all cuts: everything passes again. `lost`: connections close and lose their data, as when
   * a middlebox has forgotten them. Returns the number of milliseconds for which delayed bytes may
   * still arrive.
   */
  heal(options?: { readonly lost?: boolean }): number;
  close(): Promise<void>;
}

/** Where a process runs, and its addresses. */
export interface Place {
  /** Prefix of the process's own command line. */
  readonly command: readonly string[];
  /** The process's address for the scenario's process: no cut affects that path. */
  readonly host: string;
  /** The process's address for the other ends. */
  readonly innerHost: string;
}

/** The place of a process on this host's network. */
export const here: Place = { command: [], host: "127.0.0.1", innerHost: "127.0.0.1" };

export interface NetworkOfNodes extends ClusterNetwork {
  placeOf(end: End): Place;
  /** The URL at which a node dials another. */
  routeUrl(from: number, to: number): string;
  /** The gateway's URLs of the nodes; their ports are known only when they have started. */
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}
