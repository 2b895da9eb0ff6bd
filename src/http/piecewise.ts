// Writes a long answer as its client reads it, a piece a turn of the event loop, so that no copy of
// it waits for a socket and nobody waits while one is copied. Owns nothing: who calls keeps the
// body until it is sent, and stops the writing when the client goes before that.

import type { HttpResponse } from "./uws.ts";

/** Longer answers go out in pieces. */
export const atOnceBytesMax = 16_384;
/** So much is handed to the socket in one turn: it takes some 20 µs. */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** The connection is to end with it. */
  readonly close: boolean;
  /**
   * Is called once the socket has taken it all; with `mustClose` nothing but the caller ends the
   * connection. It is not called when the client goes before that.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Returns a function that stops the writing, to be called when the client is gone: the response is
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
    // uWS tells the client the length of the first call.
    [, isWhole] = response.tryEnd(body.subarray(0, 1), body.length);
  });
  goOn(1);
  return () => {
    isStopped = true;
  };

  /**
   * Hands over a piece from `offset` on. The next one follows in the next turn where the socket
   * takes this one, else when the socket can take more.
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
    // The last piece has no byte: what was taken before may still wait for the socket.
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
