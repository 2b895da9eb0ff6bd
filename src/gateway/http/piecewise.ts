// Writes a long answer as its client reads it, one piece per turn of the event loop. So no copy of
// the answer waits for a socket, and no other request waits while a long one is copied. The caller
// keeps the body until it is sent, and stops the writing if the client disconnects before.

import type { HttpResponse } from "./uws.ts";

/** Answers longer than this are sent in pieces. */
export const atOnceBytesMax = 16_384;
/** Maximum bytes of an answer passed to the socket in one turn, which takes some 20 µs. */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** The connection must end with this answer. */
  readonly close: boolean;
  /**
   * Called once the socket has accepted the whole answer; not called if the client disconnects
   * before. With `mustClose` the caller must end the connection.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Returns a function that stops the writing. It must be called when the client has disconnected:
 * the response is not touched afterwards.
 *
 * With tryEnd, uWS keeps no copy of the data that the socket does not accept, but cannot close the
 * connection either. So with `close` uWS gets a length of one byte more than the client, and the
 * answer never ends for uWS. A further request on the connection then makes uWS end it; otherwise
 * the caller does.
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
   * Passes on a piece from `offset` on. The next one follows in the next turn if the socket accepts
   * this one, else when the socket is writable again.
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
