// What a load generator is told, as one JSON argument, and what it answers, as one IPC message.

/** How the attacking client hands over a body. */
export type Delivery = "whole" | "withheld" | "one-byte-chunks" | "held" | "client-hello";

export interface LoadJob {
  readonly url: string;
  readonly path: string;
  readonly method: "POST" | "PUT";
  readonly connections: number;
  /** A file that is one body, or whose lines are each one. */
  readonly bodyFile: string;
  readonly lines: boolean;
  readonly contentEncoding: string | undefined;
  /** Ends after this time, or, if set, after so many answers. */
  readonly seconds: number;
  readonly amount: number | undefined;
  /** For the paced client: requests a second. */
  readonly rate: number | undefined;
  /**
   * For the paced client: requests due in the first seconds are sent and counted, but their latency
   * is not, because it is that of a client whose code is still being compiled.
   */
  readonly settleSeconds: number;
  /** For the paced client: each request opens a connection of its own. */
  readonly opensConnections: boolean;
  /**
   * For the attacking client: without its last byte, which never comes, as chunks of one byte each,
   * whole but only every seven seconds on each connection, or, instead of a request, one recorded
   * ClientHello on each connection, which is closed at the first byte of the answer.
   */
  readonly delivery: Delivery;
  /** For the attacking client: its connections come from these addresses in turn. */
  readonly from: readonly string[];
}

export interface LoadResult {
  /** Answers of any status. */
  readonly requests: number;
  /** Answers other than 200. */
  readonly refused: number;
  /** Requests without an answer: connection errors and timeouts. */
  readonly failed: number;
  readonly seconds: number;
  /** Of the paced client alone: from the time a request was due to its answer. */
  readonly latencyMs: LatencyMs | undefined;
  /** Of wrk alone: from request to answer at the peak rate, so the length of the queue. */
  readonly closedLoopMs?: { readonly p50: number; readonly p99: number };
  /** Of the paced client alone: the longest time without a 200. */
  readonly longestGapMs?: number;
}

interface LatencyMs {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** What a client without latencies has counted from `beganMs` until now. */
interface Counted {
  readonly sent: number;
  readonly answered: number;
  readonly refused: number;
  readonly beganMs: number;
}

/** Tells the result, and ends the process. */
export function endWith({ sent, answered, refused, beganMs }: Counted): void {
  const result: LoadResult = {
    requests: answered,
    refused,
    failed: sent - answered,
    seconds: (performance.now() - beganMs) / 1_000,
    latencyMs: undefined,
  };
  process.send?.(result, () => process.exit(0));
}
