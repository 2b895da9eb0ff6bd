// Defers the acknowledgement of a frame that skipped duplicates until the frames that delivered the
// original events are acknowledged too. Otherwise, the only stored copy of an event could be
// acknowledged before the event is processed.

interface OpenFrame {
  readonly id: number;
  /** Sends the acknowledgement. Undefined until the program acknowledges the frame. */
  send: (() => void) | undefined;
  /**
   * Frames that delivered the events skipped in this frame and that the program has not
   * acknowledged.
   */
  readonly waitsFor: Set<OpenFrame>;
  readonly awaitedBy: Set<OpenFrame>;
}

export class DeferredAcks {
  /** Delivered frames whose acknowledgement has not been sent. */
  readonly #open = new Map<number, OpenFrame>();

  /**
   * Records that a frame is delivered, for the first time or again, without the events that the
   * frames `others` have delivered.
   */
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

  /**
   * Records that the program has acknowledged the frame. Calls `send` once: now, or when the frames
   * that this one waits for are acknowledged.
   */
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
      // The acknowledged frame may have skipped those events itself when it was delivered again.
      for (const behind of frame.waitsFor) link(one, behind);
    }
    frame.awaitedBy.clear();
    for (const one of [frame, ...waiting]) this.#sendIfFree(one);
  }

  /** Cancels a deferred acknowledgement, because the frame will be delivered again. */
  takeBack(id: number): void {
    const frame = this.#open.get(id);
    if (frame === undefined) return;
    frame.send = undefined;
    unlink(frame);
  }

  /** Whether the program has acknowledged the frame and the acknowledgement has not been sent. */
  isDeferred(id: number): boolean {
    return this.#open.get(id)?.send !== undefined;
  }

  /** Whether the acknowledgement of another frame waits for this frame. */
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

/**
 * Makes `frame` wait for `other`. Ignores a frame that would wait for itself, which happens if two
 * frames have each skipped events of the other.
 */
function link(frame: OpenFrame, other: OpenFrame): void {
  if (frame === other) return;
  frame.waitsFor.add(other);
  other.awaitedBy.add(frame);
}

function unlink(frame: OpenFrame): void {
  for (const other of frame.waitsFor) other.awaitedBy.delete(frame);
  frame.waitsFor.clear();
}
