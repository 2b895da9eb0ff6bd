import type { ReaderWords } from "../../stream/resume.ts";

export const effectsWords: ReaderWords = {
  action: "`penstock effects run --accept-expired` continues",
  stays: "their effects stay",
  reread: (olderTo) =>
    `usage and spikes count ${olderTo === 0 ? "all of these messages" : `only the messages after ${olderTo}, the last one as old as those that were read`}`,
};
