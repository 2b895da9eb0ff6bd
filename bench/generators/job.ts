// The job of a load generator, as one JSON argument, and its result, as one IPC message.

/** How the attacking client sends a body. */
export type Delivery = "whole" | "withheld" | "one-byte-chunks" | "held" | "client-hello";

export interface LoadJob {
  readonly url: string;
  readonly path: string;
  readonly method: "POST" | "PUT";
  readonly connections: number;
  /** A file that is one body, or with one body per line. */
  readonly bodyFile: string;
  readonly lines: boolean;
  readonly contentEncoding: string | undefined;
  /** Ends after this time, or, if set, after this number of answers. */
  readonly seconds: number;
  readonly amount: number | undefined;
  /** For the paced client: requests a second. */
  readonly rate: number | undefined;
  /**
   * For the paced client: requests due in the first seconds are sent and counted, but their latency
   * is not, because the client's code is still being compiled.
   */
  readonly settleSeconds: number;
  /** For the paced client: each request opens a new connection. */
  readonly opensConnections: boolean;
  /**
   * For the attacking client: without its last byte, which is never sent, as chunks of one byte
   * each, whole but only every seven seconds on each connection, or, instead of a request, one
   * recorded ClientHello on each connection, which is closed at the first byte of the answer.
   */
  readonly delivery: Delivery;
  /** For the attacking client: its connections use these addresses in turn. */
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
  /** Only from the paced client: from the time a request was due to its answer. */
  readonly latencyMs: LatencyMs | undefined;
  /** Only from wrk: from request to answer at the peak rate, which is the length of the queue. */
  readonly closedLoopMs?: { readonly p50: number; readonly p99: number };
  /** Only from the paced client: the longest time without a 200. */
  readonly longestGapMs?: number;
}

interface LatencyMs {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** The counts of a client without latencies from `beganMs` until now. */
interface Counted {
  readonly sent: number;
  readonly answered: number;
  readonly refused: number;
  readonly beganMs: number;
}

/** Sends the result, and ends the process. */
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
