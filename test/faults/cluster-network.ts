// What is between the nodes of a cluster, and between the gateway and each of them: any two can be
// cut off from each other, both ways or one. There are two of the kind: network namespaces, where
// packets are lost as on a real network, and TCP proxies, which any user may have. Must not decide
// what is cut: the scenario does.

export const networkKinds = ["namespaces", "proxies"] as const;
export type NetworkKind = (typeof networkKinds)[number];

/** One end of a way through the network: a node by its number, or the gateway. */
export type End = number | "gateway";

/**
 * - `silent`: nothing passes and no connection ends; what was said arrives when the cut is healed.
 * - `reset`: connections end, and none can be opened.
 * - `one-way`: nothing passes from the first to the second.
 */
export type Cut = "silent" | "reset" | "one-way";

export interface ClusterNetwork {
  cut(from: End, to: End, how: Cut): void;
  /** Cuts each of these ends off from every other end. */
  isolate(ends: readonly End[], how: Cut): void;
  /**
   * Slows the ways between the first end and each of the others: bytes pass this late, and no
   * faster than so many a second each way. Answers, in words, what this network can do of it.
   */
  slow(
    from: End,
    to: readonly End[],
    speed: { readonly delayMs: number; readonly bytesPerSecond: number },
  ): string;
  /**
   * Ends all cuts: everything passes again. `lost`: connections end, with the bytes they held, as
   * when a middlebox has forgotten them. Answers for how many milliseconds from now on held-back
   * bytes may still be on their way.
   */
  heal(options?: { readonly lost?: boolean }): number;
  close(): Promise<void>;
}

/** Where a process runs, and how it is found. */
export interface Place {
  /** Goes before the process's own command line. */
  readonly command: readonly string[];
  /** The process's address for whoever runs the scenario: no cut reaches that way. */
  readonly host: string;
  /** The process's address for the other ends. */
  readonly innerHost: string;
}

/** The place of a process that runs among the processes of this host. */
export const here: Place = { command: [], host: "127.0.0.1", innerHost: "127.0.0.1" };

export interface NetworkOfNodes extends ClusterNetwork {
  placeOf(end: End): Place;
  /** The URL at which a node dials another. */
  routeUrl(from: number, to: number): string;
  /** Where the gateway finds the nodes; their ports are known only when they have started. */
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}
