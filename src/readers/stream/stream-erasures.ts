// Handles the erasures in a stream. It excludes erased messages from the losses, and finds the
// frames that replace them.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ErasedMessages, type RewrittenFrame } from "../../platform/nats/erased-messages.ts";
import { reportedTo, type StreamPosition } from "./resume.ts";
import { type AskedStream, type StreamState, storedStream } from "./stored-stream.ts";

interface ErasedMessage {
  readonly sequence: number;
  readonly frame: RewrittenFrame | undefined;
  readonly isMissed: boolean;
}

interface StateFrom extends StreamState {
  readonly replacementsFrom: number;
}

export interface Range {
  readonly from: number;
  readonly to: number;
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
   * Returns the state, or undefined if the stream does not exist. Erased messages from `due` on do
   * not count as lost, because the reader will get their replacements. Losses that `position` marks
   * as reported are not counted again.
   */
  async stateFrom(due: number, position?: StreamPosition): Promise<StateFrom | undefined> {
    const state = await this.#asked.state();
    if (state === undefined) return undefined;
    const { firstSequence: first, created, beginsAt } = state;
    if (first <= Math.max(due, beginsAt)) return { ...state, replacementsFrom: first };
    const erased = await this.learned(due, created);
    const firstSequence = await erased.firstOf(first, due);
    const isReported = position?.created === created && firstSequence <= reportedTo(position) + 1;
    if (isReported) return { ...state, firstSequence: due, replacementsFrom: due };
    const { value: replacementsFrom = firstSequence } = await erased
      .standing(firstSequence, due)
      .next();
    return { ...state, firstSequence, replacementsFrom };
  }

  async *between({ from, to, created }: Range): AsyncGenerator<ErasedMessage> {
    if (from > to) return;
    const erased = await this.learned(from, created);
    for await (const sequence of erased.between(from, to)) {
      const frame = await erased.frameAt(sequence);
      const isMissed = frame === undefined && (await erased.replacementOf(sequence)) !== 0;
      yield { sequence, frame, isMissed };
    }
  }

  async learned(due: number, created: string): Promise<ErasedMessages> {
    if (this.#erased?.created !== created)
      this.#erased = new ErasedMessages(this.#manager, { stream: this.#stream, created });
    await this.#erased.learn(due);
    return this.#erased;
  }
}
