// Selects the lines of a message for an export: those of one project that were received in a time
// range. They are written as stored.

import { Buffer } from "node:buffer";
import { isOfManyProjects } from "../../platform/nats/names.ts";
import { Line } from "../../records/lines.ts";
import { RecordReader } from "../../records/reader.ts";

export interface Choice {
  readonly project: string;
  /**
   * Only events received at or after this time; undefined: no lower limit. In the format of a
   * record.
   */
  readonly from: string | undefined;
  /** Only events received before this time. */
  readonly to: string | undefined;
}

/** The selected part of a message. */
export interface Chosen {
  /** With a line feed after each line. */
  readonly bytes: Buffer;
  readonly events: number;
  /** Number of lines that are not records. */
  readonly unreadable: number;
}

const lineFeed = Buffer.from("\n");

export class ChosenLines {
  readonly #choice: Choice;
  readonly #fromMs: number | undefined;
  readonly #toMs: number | undefined;
  readonly #records = new RecordReader();

  constructor(choice: Choice) {
    this.#choice = choice;
    this.#fromMs = choice.from === undefined ? undefined : Date.parse(choice.from);
    this.#toMs = choice.to === undefined ? undefined : Date.parse(choice.to);
  }

  of({ subject, data }: { readonly subject: string; readonly data: Uint8Array }): Chosen {
    const isShared = isOfManyProjects(subject);
    const chosen: Uint8Array[] = [];
    let unreadable = 0;
    const reading = this.#records.read(data, {
      record: (record) => {
        const receivedAtMs = record.ms(Line.ReceivedAt);
        if (isShared && record.projectId !== this.#choice.project) return;
        // A record without a receive time cannot be known to be late enough.
        if (this.#fromMs !== undefined && !(receivedAtMs >= this.#fromMs)) return;
        if (this.#toMs !== undefined && receivedAtMs >= this.#toMs) return;
        chosen.push(data.subarray(record.start, record.end), lineFeed);
      },
      unreadable: () => void unreadable++,
    });
    for (const _ of reading);
    return { bytes: Buffer.concat(chosen), events: chosen.length / 2, unreadable };
  }
}
