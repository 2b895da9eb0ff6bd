// What of a stream was erased, as far as a reader needs it: the stream's state with what is missing
// but for that, and the frames in the place of others.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ErasedMessages, type RewrittenFrame } from "../../platform/nats/erased-messages.ts";
import type { Place } from "./resume.ts";
import { type AskedStream, type StreamState, storedStream } from "./stored-stream.ts";
import { toldTo } from "./trail.ts";

interface ErasedMessage {
  readonly sequence: number;
  /** What stands in its place, if anything does. */
  readonly frame: RewrittenFrame | undefined;
  /** A frame stood in its place, and has left the stream. */
  readonly isMissed: boolean;
}

interface StateFrom extends StreamState {
  /**
   * The first erased message before the stream's first one in whose place a frame stands that the
   * stream still has: such a frame was stored later. Where there is none, `firstSequence`.
   */
  readonly standingFrom: number;
}

interface Range {
  readonly from: number;
  readonly to: number;
  /** When the stream was made, as the server says it. */
  readonly created: string;
}

export class StreamErasures {
  readonly #manager: JetStreamManager;
  readonly #stream: string;
  readonly #asked: AskedStream;
  #erased: ErasedMessages | undefined;

  constructor(manager: JetStreamManager, stream: string) {
    this.#manager = manager;
    this.#stream = stream;
    this.#asked = storedStream(manager, stream);
  }

  /**
   * The stream's state. What an erasure has taken from its beginning, from `due` on, does not count
   * as gone: the reading may begin there, and finds what stands in its place. Nor does what the
   * reader that is at `place` was told of. Undefined: there is no such stream.
   */
  async stateFrom(due: number, place?: Place): Promise<StateFrom | undefined> {
    const state = await this.#asked.state();
    if (state === undefined) return undefined;
    const { firstSequence: first, created, beginsAt } = state;
    if (first <= Math.max(due, beginsAt)) return { ...state, standingFrom: first };
    const erased = await this.learned(due, created);
    const firstSequence = await erased.firstOf(first, due);
    const isTold = place?.created === created && firstSequence <= toldTo(place) + 1;
    if (isTold) return { ...state, firstSequence: due, standingFrom: due };
    const { value: standingFrom = firstSequence } = await erased
      .standing(firstSequence, due)
      .next();
    return { ...state, firstSequence, standingFrom };
  }

  /** Those between the two, both included, in order. */
  async *between({ from, to, created }: Range): AsyncGenerator<ErasedMessage> {
    if (from > to) return;
    const erased = await this.learned(from, created);
    for await (const sequence of erased.between(from, to)) {
      const frame = await erased.frameAt(sequence);
      const isMissed = frame === undefined && (await erased.placeOf(sequence)) !== 0;
      yield { sequence, frame, isMissed };
    }
  }

  /** All that is known now, from `due` on. */
  async learned(due: number, created: string): Promise<ErasedMessages> {
    if (this.#erased?.created !== created)
      this.#erased = new ErasedMessages(this.#manager, { stream: this.#stream, created });
    await this.#erased.learn(due);
    return this.#erased;
  }
}
