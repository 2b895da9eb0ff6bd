import type { HttpResponse } from "./uws.ts";

/** Maximum bytes of an answer that is sent in one piece. */
export const atOnceBytesMax = 16_384;
/** Bytes passed to the socket per event loop iteration, which takes some 20 µs. */
const pieceBytesMax = 65_536;

export interface PiecewiseOptions {
  /** Writes status and headers, but not the length. */
  readonly writeHead: (response: HttpResponse) => void;
  /** Whether the connection must end with the answer. */
  readonly close: boolean;
  /** Called when the socket has accepted the whole answer. The caller closes if `mustClose`. */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Returns a function that must be called when the client disconnects. The caller keeps the body
 * until then. With tryEnd, uWS keeps no copy of unsent data, but cannot close. So with `close` uWS
 * gets a length one byte too large: for uWS the answer never ends, and a further request makes it
 * close.
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
   * If the socket accepts the piece, the next one follows in the next iteration; otherwise when the
   * socket is writable again.
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
    // Bytes of the previous piece may still wait until an empty piece is accepted as well.
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
