// Holds back the acknowledgement of a frame that leaves out events because another frame has
// delivered them, until that one is acknowledged too. Else the only stored copy of an event could
// be acknowledged while the work on it may still be lost. Knows nothing of streams.

interface OpenFrame {
  readonly id: number;
  /** Sends the acknowledgement; undefined: the program has not given it. */
  send: (() => void) | undefined;
  /** Frames that have delivered what this one leaves out; the program has acknowledged none. */
  readonly waitsFor: Set<OpenFrame>;
  readonly awaitedBy: Set<OpenFrame>;
}

export class DeferredAcks {
  /** What was delivered, and is not acknowledged to the server. */
  readonly #open = new Map<number, OpenFrame>();

  /** The frame is delivered, or is again, without events that those others have delivered. */
  deliver(id: number, others: Iterable<number>): void {
    const frame = this.#open.get(id) ?? newFrame(id);
    this.#open.set(id, frame);
    unlink(frame);
    for (const one of others) {
      const other = this.#open.get(one);
      if (other === undefined) continue;
      if (other.send === undefined) link(frame, other);
      else for (const behind of other.waitsFor) link(frame, behind);
    }
  }

  /** The program is done with the frame. `send` is called once, now or later. */
  acknowledge(id: number, send: () => void): void {
    const frame = this.#open.get(id);
    if (frame === undefined) {
      send();
      return;
    }
    if (frame.send !== undefined) return;
    frame.send = send;
    const waiting = [...frame.awaitedBy];
    for (const one of waiting) {
      one.waitsFor.delete(frame);
      // It may have left the events out itself when it was delivered again.
      for (const behind of frame.waitsFor) link(one, behind);
    }
    frame.awaitedBy.clear();
    for (const one of [frame, ...waiting]) this.#sendIfFree(one);
  }

  /** The acknowledgement that is held back is not sent: the frame is to be delivered again. */
  takeBack(id: number): void {
    const frame = this.#open.get(id);
    if (frame === undefined) return;
    frame.send = undefined;
    unlink(frame);
  }

  /** The program has acknowledged it, and the server does not know. */
  isDeferred(id: number): boolean {
    return this.#open.get(id)?.send !== undefined;
  }

  /** Others wait for it to be acknowledged. */
  isAwaited(id: number): boolean {
    return (this.#open.get(id)?.awaitedBy.size ?? 0) > 0;
  }

  #sendIfFree(frame: OpenFrame): void {
    if (frame.send === undefined || frame.waitsFor.size > 0) return;
    this.#open.delete(frame.id);
    frame.send();
  }
}

function newFrame(id: number): OpenFrame {
  return { id, send: undefined, waitsFor: new Set(), awaitedBy: new Set() };
}

/** None waits for itself: two frames may each leave out what the other one has delivered. */
function link(frame: OpenFrame, other: OpenFrame): void {
  if (frame === other) return;
  frame.waitsFor.add(other);
  other.awaitedBy.add(frame);
}

function unlink(frame: OpenFrame): void {
  for (const other of frame.waitsFor) other.awaitedBy.delete(frame);
  frame.waitsFor.clear();
}
