// Delays the acknowledgement of a frame if duplicates in it were skipped. The acknowledgement is
// sent after the frames with the originals are acknowledged. Otherwise, an original could be lost
// after its duplicate was acknowledged.

interface OpenFrame {
  readonly id: number;
  send: (() => void) | undefined;
  readonly waitsFor: Set<OpenFrame>;
  readonly awaitedBy: Set<OpenFrame>;
}

export class DeferredAcks {
  readonly #open = new Map<number, OpenFrame>();

  deliver(id: number, others: Iterable<number>): void {
    const fresh = {
      id,
      send: undefined,
      waitsFor: new Set<OpenFrame>(),
      awaitedBy: new Set<OpenFrame>(),
    };
    const frame: OpenFrame = this.#open.get(id) ?? fresh;
    this.#open.set(id, frame);
    unlink(frame);
    for (const one of others) {
      const other = this.#open.get(one);
      if (other === undefined) continue;
      if (other.send === undefined) link(frame, other);
      else for (const behind of other.waitsFor) link(frame, behind);
    }
  }

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
      // When a frame is delivered again, its events may now count as duplicates. Frames that waited
      // for this frame then wait for the frames with the originals.
      for (const behind of frame.waitsFor) link(one, behind);
    }
    frame.awaitedBy.clear();
    for (const one of [frame, ...waiting]) this.#sendIfFree(one);
  }

  takeBack(id: number): void {
    const frame = this.#open.get(id);
    if (frame === undefined) return;
    frame.send = undefined;
    unlink(frame);
  }

  isDeferred(id: number): boolean {
    return this.#open.get(id)?.send !== undefined;
  }

  isAwaited(id: number): boolean {
    return (this.#open.get(id)?.awaitedBy.size ?? 0) > 0;
  }

  #sendIfFree(frame: OpenFrame): void {
    if (frame.send === undefined || frame.waitsFor.size > 0) return;
    this.#open.delete(frame.id);
    frame.send();
  }
}

function link(frame: OpenFrame, other: OpenFrame): void {
  if (frame === other) return;
  frame.waitsFor.add(other);
  other.awaitedBy.add(frame);
}

function unlink(frame: OpenFrame): void {
  for (const other of frame.waitsFor) other.awaitedBy.delete(frame);
  frame.waitsFor.clear();
}
