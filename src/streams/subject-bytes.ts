// Estimates how many bytes a stream has under a subject: the number of its messages there times the
// mean size of a few of them. JetStream tells the bytes of a whole stream only, and to read all
// messages would cost more than a share is worth. Good to some per cent.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";

const samplesMax = 6;
/** What a message takes in a stream's file beside its subject, headers and payload. */
const messageOverheadBytes = 30;

/** So many means are kept. Of a subject whose mean is not, messages are read again. */
const meansMax = 1_024;

export class SubjectBytes {
  readonly #stream: string;
  readonly #means = new Map<string, number>();

  constructor(stream: string) {
    this.#stream = stream;
  }

  /**
   * With `isFresh` the mean is read anew from some messages, else only where none has been read
   * yet. Rejects when JetStream does not answer.
   */
  async ask(manager: JetStreamManager, subject: string, isFresh: boolean): Promise<number> {
    const { state } = await manager.streams.info(this.#stream, { subjects_filter: subject });
    const messages = state.subjects?.[subject] ?? 0;
    if (messages === 0) return 0;
    const mean = isFresh ? undefined : this.#means.get(subject);
    if (mean !== undefined) return messages * mean;
    const read = await this.#meanBytes(manager, subject, state);
    if (read !== undefined) this.#keep(subject, read);
    return messages * (read ?? state.bytes / Math.max(1, state.messages));
  }

  #keep(subject: string, mean: number): void {
    this.#means.delete(subject);
    this.#means.set(subject, mean);
    const [oldest = ""] = this.#means.keys();
    if (this.#means.size > meansMax) this.#means.delete(oldest);
  }

  async #meanBytes(
    manager: JetStreamManager,
    subject: string,
    state: StreamInfo["state"],
  ): Promise<number | undefined> {
    let bytes = 0;
    let found = 0;
    const read = async (seq: number): Promise<void> => {
      const message = await manager.direct
        .getMessage(this.#stream, { seq, next_by_subj: subject })
        .catch(() => null);
      if (message === null) return;
      bytes +=
        message.data.length + subject.length + messageOverheadBytes + headerBytes(message.header);
      found++;
    };
    const span = state.last_seq - state.first_seq + 1;
    for (let sample = 0; sample < samplesMax; sample++) {
      await read(state.first_seq + Math.floor(((sample + Math.random()) * span) / samplesMax));
    }
    // Every message of the subject lies before the first place that was tried: other subjects have
    // filled the stream since.
    if (found === 0) await read(state.first_seq);
    return found > 0 ? bytes / found : undefined;
  }
}

/**
 * The bytes of the headers as they are in the stored message. Those that the server adds to its
 * answer are left out.
 */
function headerBytes(header: Iterable<[string, string[]]>): number {
  let bytes = 12;
  for (const [name, values] of header) {
    if (!/^Nats-(Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence)/.test(name)) {
      bytes += name.length + (values[0]?.length ?? 0) + 4;
    }
  }
  return bytes;
}
