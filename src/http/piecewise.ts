// Writes a long answer as its client reads it, a piece a turn of the event loop, so that no copy of
// it waits for a socket and nobody waits while one is copied. Owns nothing: who calls keeps the
// body until it is sent, and stops the writing when the client goes before that.

import type { HttpResponse } from "./uws.ts";

/** Longer answers go out so. */
export const atOnceBytesMax = 16_384;
/** Handed to the socket in one turn: some 20 µs. */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** The connection is to end with it. */
  readonly close: boolean;
  /**
   * Called once the socket has taken it all; with `mustClose` nothing but the caller ends the
   * connection. Not called when the client goes before that.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Answers a function that stops the writing, to be called when the client is gone: the response is
 * not touched after it.
 *
 * Where uWS is told not to keep what the socket does not take, it cannot close the connection. To
 * that end it is told of one byte more to come than the client is: the answer never ends, and a
 * request behind it ends the connection, as does the caller.
 */
export function writePiecewise(
  response: HttpResponse,
  body: Uint8Array,
  { writeHead, close, sent }: PiecewiseOptions,
): () => void {
  const bytesTold = close ? body.length + 1 : body.length;
  let isStopped = false;
  response.onWritable((offset) => goOn(offset));
  let isWhole = false;
  response.cork(() => {
    writeHead(response);
    if (close) response.writeHeader("Connection", "close");
    // The length that is told is the one that is named first.
    [, isWhole] = response.tryEnd(body.subarray(0, 1), body.length);
  });
  goOn(1);
  return () => {
    isStopped = true;
  };

  /**
   * From `offset` on: in the next turn where the socket takes the piece, else when it can take
   * more.
   */
  function goOn(offset: number): boolean {
    if (isStopped) return true;
    const piece = body.subarray(offset, offset + pieceBytesMax);
    let isTaken = false;
    response.cork(() => {
      [isTaken, isWhole] = response.tryEnd(piece, bytesTold);
    });
    if (isWhole) return finish(false);
    if (!isTaken) return false;
    // One piece more, without a byte: what was taken last may still wait for the socket.
    if (piece.length === 0) return finish(true);
    setImmediate(() => {
      if (!isStopped) goOn(response.getWriteOffset());
    });
    return true;
  }

  function finish(mustClose: boolean): boolean {
    isStopped = true;
    sent(mustClose);
    return true;
  }
}
