// What the texts about a stream say where the effects read it.

import type { ReaderWords } from "../../stream/resume.ts";

export const effectsWords: ReaderWords = {
  wayOut: "`penstock effects run --accept-expired` goes on",
  stays: "their effects stay",
  twice: (olderTo) =>
    `usage and spikes count ${olderTo === 0 ? "all of it" : `what is behind message ${olderTo}, the last that is as old as what was read`}`,
};
