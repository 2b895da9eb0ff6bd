// Writes a long answer as its client reads it, one piece per event loop iteration. So no copy of
// the answer waits for a socket, and other requests do not wait while a long answer is copied. The
// caller keeps the body until it is sent, and stops the writing if the client disconnects before.

import type { HttpResponse } from "./uws.ts";

/** Maximum length in bytes of an answer that is sent in one piece. */
export const atOnceBytesMax = 16_384;
/**
 * Maximum bytes of an answer passed to the socket per event loop iteration, which takes some 20 µs.
 */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** Whether the connection must end with the answer. */
  readonly close: boolean;
  /**
   * Reports that the socket has accepted the whole answer; not called if the client disconnects
   * before. If `mustClose` is true, the caller must close the connection.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Writes the answer and returns a function that stops the writing. The function must be called when
 * the client disconnects: the response is not touched afterwards.
 *
 * With tryEnd, uWS keeps no copy of the data that the socket does not accept, but it cannot close
 * the connection either. So with `close` uWS gets a length that is one byte too large, and the
 * answer never ends for uWS. A further request on the connection makes uWS end it; otherwise the
 * caller must close the connection.
 */
export function writePiecewise(
  response: HttpResponse,
  body: Uint8Array,
  { writeHead, close, sent }: PiecewiseOptions,
): () => void {
  const declaredBytes = close ? body.length + 1 : body.length;
  let isStopped = false;
  response.onWritable((offset) => writeFrom(offset));
  let isWhole = false;
  response.cork(() => {
    writeHead(response);
    if (close) response.writeHeader("Connection", "close");
    // uWS sends the client the total length of this first call.
    [, isWhole] = response.tryEnd(body.subarray(0, 1), body.length);
  });
  writeFrom(1);
  return () => {
    isStopped = true;
  };

  /**
   * Passes the piece at `offset` to the socket. If the socket accepts the piece, the next one
   * follows in the next event loop iteration; otherwise it follows when the socket is writable
   * again.
   */
  function writeFrom(offset: number): boolean {
    if (isStopped) return true;
    const piece = body.subarray(offset, offset + pieceBytesMax);
    let isTaken = false;
    response.cork(() => {
      [isTaken, isWhole] = response.tryEnd(piece, declaredBytes);
    });
    if (isWhole) return finish(false);
    if (!isTaken) return false;
    // The answer is complete only when an empty piece is accepted as well: bytes of the previous
    // piece may still wait for the socket.
    if (piece.length === 0) return finish(true);
    setImmediate(() => {
      if (!isStopped) writeFrom(response.getWriteOffset());
    });
    return true;
  }

  function finish(mustClose: boolean): boolean {
    isStopped = true;
    sent(mustClose);
    return true;
  }
}
