// Tracks the sent data that clients have not acknowledged. A request of 60 bytes for a script can
// make the kernel buffer a hundred kilobytes. No memory limit of the process includes this buffer.
// So if a client does not read for too long, its connection is reset.

import type { ConnectionAddon } from "./connection-id.ts";

export const checkMs = 1_000;
const stillMsMax = 15_000;
/** uWS closes the connection after this time. It must be longer than `stillMsMax`. */
const openSeconds = 20;
/**
 * If more bytes are unread, connections without progress are reset first, and then the connections
 * with the most unread bytes. With fewer unread bytes, clients may read slowly.
 */
const bytesMax = 33_554_432;
const fullBytes = 65_536;
/** The kernel allocates twice this size. */
const kernelBytesMax = 131_072;
/**
 * The kernel closes a connection after this time without an acknowledgement. This also applies to
 * connections that the gateway has closed.
 */
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

  limit(listenSocket: object): void {
    this.#options.addon.limitSends(listenSocket, kernelBytesMax, kernelDeadlineMs);
  }

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
