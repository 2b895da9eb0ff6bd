// Logs once when a stream is full, and once when it has room again. While it is full, requests are
// answered 503, and an operator checks the log first. Refuses no request itself.

import type { Log } from "../../platform/base/log.ts";
import type { StreamState } from "../../platform/nats/readiness.ts";

interface StreamRoomOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "warn">;
}

/** A leader's report on the stream's size, with the maximum bytes of one message. */
interface Fill {
  readonly bytes: number;
  /** Maximum bytes of the stream; Infinity without a limit. */
  readonly bytesMax: number;
  readonly messageBytes: number;
}

/**
 * The part of a stream that must also be free before a full stream counts as having room. Otherwise
 * a stream whose old events are removed as new ones arrive would be logged repeatedly.
 */
const freePart = 1 / 64;

const streamIsFull =
  "stream full: requests that it has no room for are answered " +
  "503 store_full. Raise PENSTOCK_STREAM_BYTES_MAX and restart, or purge what all readers have " +
  "read: docs/guides/operations.md, When a stream is full";
const serverIsFull =
  "NATS storage full: it has no room for a stream below its own limit, and requests are answered " +
  "503 store_full. Check the disk, max_file_store and the account: penstock doctor names them";

export class StreamRoom {
  readonly #options: StreamRoomOptions;
  #logged: "stream_full" | "server_full" | undefined;

  constructor(options: StreamRoomOptions) {
    this.#options = options;
  }

  /**
   * Evaluates a leader's report on the stream. Returns the reasons why events cannot be stored.
   */
  read(fill: Fill): string[] {
    const { bytes, bytesMax, messageBytes } = fill;
    const isFull = bytes + messageBytes > bytesMax;
    if (this.#logged !== undefined) this.#logRoom(fill);
    else if (isFull) this.#logFull("stream_full", fill);
    else if (this.#options.state.isServerFull) this.#logFull("server_full", fill);
    const { name } = this.#options.state;
    return isFull ? [`stream ${name} is full: ${bytes} of ${bytesMax} bytes`] : [];
  }

  #logFull(why: "stream_full" | "server_full", { bytes, bytesMax }: Fill): void {
    const { state, log } = this.#options;
    const limit = Number.isFinite(bytesMax) ? { bytes_max: bytesMax } : {};
    log.warn(
      { stream: state.name, bytes, ...limit },
      why === "stream_full" ? streamIsFull : serverIsFull,
    );
    this.#logged = why;
  }

  #logRoom({ bytes, bytesMax, messageBytes }: Fill): void {
    const { state, log } = this.#options;
    const isTight = bytes > 0 && bytes + messageBytes + bytesMax * freePart > bytesMax;
    if (isTight || state.isServerFull) return;
    this.#logged = undefined;
    log.info({ stream: state.name, bytes }, "stream has room again: its events are accepted");
  }
}
