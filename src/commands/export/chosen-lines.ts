import { Buffer } from "node:buffer";
import { isOfManyProjects } from "../../platform/nats/names.ts";
import { Line } from "../../records/lines.ts";
import { RecordReader } from "../../records/reader.ts";
import type { WholeMessage } from "./whole-messages.ts";

export interface Choice {
  readonly project: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export interface Chosen {
  readonly bytes: Buffer;
  readonly events: number;
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

  choose({ subject, data }: Pick<WholeMessage, "subject" | "data">): Chosen {
    const isShared = isOfManyProjects(subject);
    const chosen: Uint8Array[] = [];
    let unreadable = 0;
    const reading = this.#records.read(data, {
      record: (record) => {
        const receivedAtMs = record.ms(Line.ReceivedAt);
        if (isShared && record.projectId !== this.#choice.project) return;
        // A record without a receive time is skipped, because it may be outside the range.
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
