// Writes a long answer as its client reads it, one piece in a turn of the event loop. So no copy of
// the answer waits for a socket, and nobody waits while a long one is copied. The caller keeps the
// body until it is sent, and stops the writing when the client goes before that.

import type { HttpResponse } from "./uws.ts";

/** Answers longer than this go out in pieces. */
export const atOnceBytesMax = 16_384;
/** At most this much of an answer is handed to the socket in one turn, which takes some 20 µs. */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** The connection is to end with this answer. */
  readonly close: boolean;
  /**
   * Called once the socket has taken the whole answer; not called when the client goes before that.
   * With `mustClose` the caller has to end the connection: nothing else does.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Returns a function that stops the writing, to be called when the client is gone: the response is
 * not touched after it.
 *
 * With tryEnd, uWS keeps no copy of what the socket does not take, but cannot close the connection
 * either. So with `close` uWS is told of one byte more than the client is, and the answer never
 * ends for uWS. A further request on the connection then makes uWS end it; without one the caller
 * does.
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
    // uWS tells the client the total length that this first call gives.
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
    // The answer is whole only when an empty piece is taken as well: bytes of the piece before may
    // still wait for the socket.
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
