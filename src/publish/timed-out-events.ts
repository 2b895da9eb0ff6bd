// Remembers the events of small requests that were answered `timeout`: their frame was sent, and
// not acknowledged in time. The client sends such a request again, and if its events have no uuids,
// no reader can tell the second sending from the first. So an event that comes again waits for the
// frame that holds it already, and is not stored a second time. Nothing is compared until a request
// has timed out.

import type { RequestWaiter } from "../base/types.ts";
import { Fate, type Frame } from "./frame.ts";

/** Maximum number of remembered events. Beyond that the oldest is forgotten. */
const eventsMax = 65_536;
/** As long as the streams know a frame that is sent again. */
const rememberedMs = 120_000;
const lineFeed = 0x0a;

interface TimedOut {
  readonly identity: string;
  readonly fate: Fate;
  readonly untilMonotonicMs: number;
}

interface TimedOutEventsOptions {
  /** Names an event, given its record: the same each time that the event is sent. */
  readonly identify: (record: Buffer) => string;
  readonly monotonicMs: () => number;
}

export class TimedOutEvents {
  readonly #options: TimedOutEventsOptions;
  /** By identity. A client may send the same event several times, so there may be several. */
  readonly #events = new Map<string, TimedOut[]>();
  #size = 0;

  constructor(options: TimedOutEventsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** Remembers the events in these bytes of the frame, which is still under way. */
  remember(frame: Frame, start: number, end: number): void {
    const untilMonotonicMs = this.#options.monotonicMs() + rememberedMs;
    frame.fate ??= new Fate(frame);
    for (const [from, to] of linesOf(frame.buffer, start, end))
      this.#add({
        identity: this.#identityOf(frame, from, to),
        fate: frame.fate,
        untilMonotonicMs,
      });
  }

  /**
   * Takes the remembered events out of those lines of the frame that no waiter has joined with.
   * Returns how many were taken, by what became of their frame. They are remembered again if the
   * request of the waiter fails.
   */
  takeOut(frame: Frame, waiter: RequestWaiter): Map<Fate, number> {
    this.#forgetOld();
    const taken = new Map<Fate, number>();
    if (this.isEmpty) return taken;
    const { buffer } = frame;
    let to = frame.joinedBytes;
    let events = frame.joinedEvents;
    for (const [start, end] of linesOf(buffer, frame.joinedBytes, frame.length)) {
      const known = this.#take(this.#identityOf(frame, start, end));
      if (known === undefined) {
        if (to < start) buffer.copyWithin(to, start, end);
        to += end - start;
        events++;
      } else {
        taken.set(known.fate, 1 + (taken.get(known.fate) ?? 0));
        waiter.whenEnded((isStored) => {
          if (!isStored) this.#add(known);
        });
      }
    }
    frame.commit(to, events - frame.events);
    return taken;
  }

  #identityOf(frame: Frame, start: number, end: number): string {
    return this.#options.identify(frame.buffer.subarray(start, end));
  }

  #take(identity: string): TimedOut | undefined {
    const known = this.#events.get(identity);
    if (known === undefined) return undefined;
    let event: TimedOut | undefined;
    do {
      event = known.shift();
      if (event !== undefined) this.#size--;
      // An event of a frame that is certainly not stored, or nobody knows any more, is new.
    } while (event !== undefined && event.fate.frame === undefined && !event.fate.isStored);
    if (known.length === 0) this.#events.delete(identity);
    return event;
  }

  #add(event: TimedOut): void {
    const known = this.#events.get(event.identity);
    if (known === undefined) this.#events.set(event.identity, [event]);
    else known.push(event);
    this.#size++;
    while (this.#size > eventsMax) this.#forgetFirst();
  }

  #forgetOld(): void {
    const now = this.#options.monotonicMs();
    for (const known of this.#events.values()) {
      if (known[0]!.untilMonotonicMs > now) return;
      this.#forgetFirst();
    }
  }

  #forgetFirst(): void {
    for (const [identity, known] of this.#events) {
      this.#events.delete(identity);
      this.#size -= known.length;
      return;
    }
  }
}

/** Where each line begins and ends, its line feed included. */
function* linesOf(buffer: Buffer, start: number, end: number): Generator<[number, number]> {
  for (let from = start; from < end; ) {
    const to = buffer.indexOf(lineFeed, from) + 1;
    yield [from, to];
    from = to;
  }
}
