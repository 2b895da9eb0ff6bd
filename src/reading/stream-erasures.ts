// What of a stream was erased, as far as a reader needs it: the stream's state with what is missing
// but for that, and the frames in the place of others.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ErasedMessages } from "../nats/erased-messages.ts";
import { type AskedStream, type StreamState, storedStream } from "./stored-stream.ts";

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
   * as gone: the reading may begin there, and finds what stands in its place. Undefined: there is
   * no such stream.
   */
  async stateFrom(due: number): Promise<StreamState | undefined> {
    const state = await this.#asked.state();
    if (state === undefined || state.firstSequence <= Math.max(due, state.beginsAt)) return state;
    const erased = await this.learned(due, state.created);
    return { ...state, firstSequence: erased.firstOf(state.firstSequence) };
  }

  /** All that is known now, from `due` on. */
  async learned(due: number, created: string): Promise<ErasedMessages> {
    if (this.#erased?.created !== created)
      this.#erased = new ErasedMessages(this.#manager, { stream: this.#stream, created });
    await this.#erased.learn(due);
    return this.#erased;
  }
}
