// The job of a load generator, as one JSON argument, and its result, as one IPC message.

/** How the attacking client sends a body. */
export type Delivery = "whole" | "withheld" | "one-byte-chunks" | "held" | "client-hello";

export interface LoadJob {
  readonly url: string;
  readonly path: string;
  readonly method: "POST" | "PUT";
  readonly connections: number;
  /** The path of a file with one body, or with one body per line. */
  readonly bodyFile: string;
  readonly lines: boolean;
  readonly contentEncoding: string | undefined;
  /** The duration of the load, unless `amount` limits it to a number of responses. */
  readonly seconds: number;
  readonly amount: number | undefined;
  /** For the paced client: requests per second. */
  readonly rate: number | undefined;
  /**
   * For the paced client: the duration of the warm-up. Requests of the warm-up are sent and
   * counted, but their latency is not recorded, because the client's code is still being compiled.
   */
  readonly settleSeconds: number;
  /** For the paced client: each request opens a new connection. */
  readonly opensConnections: boolean;
  /** The form in which the attacking client sends bodies. `withheld`: without the last byte. */
  readonly delivery: Delivery;
  /** For the attacking client: the local addresses of its connections, which it uses in turn. */
  readonly from: readonly string[];
}

export interface LoadResult {
  /** Number of responses of any status. */
  readonly requests: number;
  /** Number of responses other than 200. */
  readonly refused: number;
  /** Number of requests without a response: connection errors and timeouts. */
  readonly failed: number;
  readonly seconds: number;
  /** Only from the paced client: the time from when a request was due to its response. */
  readonly latencyMs: LatencyMs | undefined;
  /**
   * Only from wrk: the time from request to response at the peak rate, which depends on the length
   * of the queue.
   */
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

/** The counts of a client that measures no latencies, and the time of its start. */
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
