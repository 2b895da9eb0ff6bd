// Tracks the sent data that clients have not acknowledged. A request of 60 bytes for a script makes
// the kernel buffer a hundred kilobytes, which no memory limit of the process counts. If a client
// does not read for too long, its connection is reset.

import type { ConnectionAddon } from "./connection-id.ts";

export const checkMs = 1_000;
/** Milliseconds without an acknowledgement after which a connection is reset. */
const stillMsMax = 15_000;
/** Seconds after which uWS closes the connection. Longer than `stillMsMax`. */
const openSeconds = 20;
/**
 * Maximum unread bytes of all connections. Above this limit, connections are reset: first
 * connections without progress, then the largest. Below it, a client may read as slowly as its
 * network allows.
 */
const bytesMax = 33_554_432;
/** Unread bytes from which a client that sends further requests is reset. */
const fullBytes = 65_536;
/** Maximum bytes in the kernel's buffer for a connection. The kernel allocates twice as much. */
const kernelBytesMax = 131_072;
/** The kernel's own deadline in milliseconds. The deadline includes closed connections. */
const kernelDeadlineMs = 20_000;

interface UnreadAnswersOptions {
  readonly addon: ConnectionAddon;
  readonly monotonicMs: () => number;
}

interface AnsweredConnection {
  readonly isIdle: boolean;
  readonly isAnswering: boolean;
  readonly usedAt: number;
  readonly closesWhenRead: boolean;
  readonly holder: object | undefined;
  readonly response: object;
  close(): void;
}

interface Unread {
  bytes: number;
  acknowledged: number;
  /** Time of the monotonic clock since which the client has acknowledged nothing. */
  stillSinceMs: number;
}

export class UnreadAnswers {
  readonly #options: UnreadAnswersOptions;
  readonly #queue = new Float64Array(2);
  readonly #unread = new Map<AnsweredConnection, Unread>();
  #usesChecked = 0;
  #bytes = 0;
  #reset = 0;

  constructor(options: UnreadAnswersOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get reset(): number {
    return this.#reset;
  }

  /** Limits the data that the kernel buffers for connections to the port. */
  limit(listenSocket: object): void {
    this.#options.addon.limitSends(listenSocket, kernelBytesMax, kernelDeadlineMs);
  }

  /** Checks the connections that have unread data or were used since the last check. */
  check(connections: Iterable<AnsweredConnection>, uses: number): void {
    const nowMs = this.#options.monotonicMs();
    const before = this.#usesChecked;
    this.#usesChecked = uses;
    this.#bytes = 0;
    for (const connection of connections)
      if (
        !connection.isIdle ||
        connection.usedAt >= before ||
        connection.closesWhenRead ||
        this.#unread.has(connection)
      )
        this.#checkOne(connection, { nowMs, before });
    for (const connection of this.#unread.keys())
      if (connection.holder === undefined) this.#unread.delete(connection);
    if (this.#bytes > bytesMax) this.#resetLargest(nowMs);
  }

  #checkOne(
    connection: AnsweredConnection,
    { nowMs, before }: { nowMs: number; before: number },
  ): void {
    const isRead = this.#options.addon.readSendQueue(connection.response, this.#queue);
    const [bytes = 0, acknowledged = 0] = isRead ? this.#queue : [];
    if (bytes === 0) {
      this.#unread.delete(connection);
      if (connection.closesWhenRead) connection.close();
      return;
    }
    this.#bytes += bytes;
    if (connection.isIdle || connection.isAnswering)
      this.#options.addon.keepOpen(connection.response, openSeconds);
    const known = this.#unread.get(connection);
    if (known === undefined) {
      this.#unread.set(connection, { bytes, acknowledged, stillSinceMs: nowMs });
      return;
    }
    const isStill = acknowledged === known.acknowledged;
    if (!isStill) known.stillSinceMs = nowMs;
    known.bytes = bytes;
    known.acknowledged = acknowledged;
    const asksOn = isStill && bytes >= fullBytes && connection.usedAt >= before;
    const isLate = nowMs - known.stillSinceMs >= stillMsMax;
    if (isLate || asksOn) this.#resetOne(connection, bytes);
  }

  #resetLargest(nowMs: number): void {
    const worst = [...this.#unread].sort(
      ([, one], [, other]) =>
        Number(other.stillSinceMs < nowMs) - Number(one.stillSinceMs < nowMs) ||
        other.bytes - one.bytes,
    );
    for (const [connection, { bytes }] of worst) {
      if (this.#bytes <= bytesMax) return;
      this.#resetOne(connection, bytes);
    }
  }

  #resetOne(connection: AnsweredConnection, bytes: number): void {
    this.#bytes -= bytes;
    this.#reset++;
    this.#unread.delete(connection);
    this.#options.addon.resetOnClose(connection.response);
    connection.close();
  }
}
