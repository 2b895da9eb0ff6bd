// The job of a load generator, as one JSON argument, and its result, as one IPC message.

export type Delivery = "whole" | "withheld" | "one-byte-chunks" | "held" | "client-hello";

export interface LoadJob {
  readonly url: string;
  readonly path: string;
  readonly method: "POST" | "PUT";
  readonly connections: number;
  /** One body, or one body per line. */
  readonly bodyFile: string;
  readonly lines: boolean;
  readonly contentEncoding: string | undefined;
  /** The duration of the load, unless `amount` limits it to a number of responses. */
  readonly seconds: number;
  readonly amount: number | undefined;
  readonly rate: number | undefined;
  /**
   * For the paced client: latencies of the warm-up are not recorded, because the client's code is
   * still being compiled.
   */
  readonly settleSeconds: number;
  readonly opensConnections: boolean;
  /** For the attacking client. `withheld`: without the last byte. */
  readonly delivery: Delivery;
  readonly from: readonly string[];
}

export interface LoadResult {
  readonly requests: number;
  readonly refused: number;
  readonly failed: number;
  readonly seconds: number;
  /** Only from the paced client: the time from when a request was due to its response. */
  readonly latencyMs: LatencyMs | undefined;
  /** Only from wrk, at the peak rate, where the time depends on the length of the queue. */
  readonly closedLoopMs?: { readonly p50: number; readonly p99: number };
  readonly longestGapMs?: number;
}

interface LatencyMs {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

interface Counted {
  readonly sent: number;
  readonly answered: number;
  readonly refused: number;
  readonly beganMs: number;
}

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
