// Tells the log when a stream is full and when it has room again, once each: while it is full
// requests are answered 503, and the log is where an operator looks first. Refuses nothing itself.

import type { Log } from "../../platform/base/log.ts";
import type { StreamState } from "../../platform/nats/readiness.ts";

interface StreamRoomOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "warn">;
}

/** What a leader says of the stream, and the most bytes that one message may bring. */
interface Fill {
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
  readonly messageBytes: number;
}

/**
 * This part of a stream has to be free besides, before a full one counts as having room. Without it
 * the log would tell again and again of a stream that old events leave as new ones come.
 */
const freePart = 1 / 64;

const streamIsFull =
  "a stream is full: it keeps what it has, and requests that it has no room for are answered " +
  "503 store_full. Raise PENSTOCK_STREAM_BYTES_MAX and restart, or purge what everybody has " +
  "read: docs/guides/operations.md, When a stream is full";
const serverIsFull =
  "NATS has no room for a stream that is below its own limit: requests are answered " +
  "503 store_full. See to the disk, max_file_store and the account: penstock doctor names them";

export class StreamRoom {
  readonly #options: StreamRoomOptions;
  #told: "stream_full" | "server_full" | undefined;

  constructor(options: StreamRoomOptions) {
    this.#options = options;
  }

  /** Judges what a leader says of the stream. Returns what keeps events from being stored. */
  read(fill: Fill): string[] {
    const { bytes, bytesMax, messageBytes } = fill;
    const isFull = bytes + messageBytes > bytesMax;
    if (this.#told !== undefined) this.#tellOfRoom(fill);
    else if (isFull) this.#tellOfNone("stream_full", fill);
    else if (this.#options.state.isServerFull) this.#tellOfNone("server_full", fill);
    const { name } = this.#options.state;
    return isFull ? [`stream ${name} is full: ${bytes} of ${bytesMax} bytes`] : [];
  }

  #tellOfNone(why: "stream_full" | "server_full", { bytes, bytesMax }: Fill): void {
    const { state, log } = this.#options;
    const limit = Number.isFinite(bytesMax) ? { bytes_max: bytesMax } : {};
    log.warn(
      { stream: state.name, bytes, ...limit },
      why === "stream_full" ? streamIsFull : serverIsFull,
    );
    this.#told = why;
  }

  #tellOfRoom({ bytes, bytesMax, messageBytes }: Fill): void {
    const { state, log } = this.#options;
    const isTight = bytes > 0 && bytes + messageBytes + bytesMax * freePart > bytesMax;
    if (isTight || state.isServerFull) return;
    this.#told = undefined;
    log.info({ stream: state.name, bytes }, "a stream has room again: its events are taken");
  }
}
