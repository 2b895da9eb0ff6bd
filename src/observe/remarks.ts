// The last things that went wrong for clients, for people who watch. A small ring: what is new pushes out what is old, and of a flood
// only the first few a second are kept, so that it costs what a flood may. Holds nothing that a client sent, and no key.

import { errorTable, type Problem } from "../errors.ts";
import type { Remark, RemarkTaker } from "../types.ts";

export interface Remarks extends RemarkTaker {
  /** The newest last. */
  latest(): readonly Remark[];
}

export interface RemarksClock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  monotonicMs(): number;
}

const keptMax = 50;
const perSecondMax = 20;
const secondMs = 1_000;

export function createRemarks({ wallMs, monotonicMs }: RemarksClock): Remarks {
  const kept: Remark[] = [];
  let secondStartMs = Number.NEGATIVE_INFINITY;
  let inSecond = 0;

  function hasRoom(): boolean {
    const nowMs = monotonicMs();
    if (nowMs - secondStartMs >= secondMs) {
      secondStartMs = nowMs;
      inSecond = 0;
    }
    return inSecond++ < perSecondMax;
  }

  function keep(remark: Omit<Remark, "atMs">): void {
    if (kept.length === keptMax) kept.shift();
    kept.push({ atMs: wallMs(), ...remark });
  }

  return {
    refused(projectId: string, { code, detail }: Problem) {
      if (hasRoom()) keep({ projectId, code, detail, status: errorTable[code].status, events: 0 });
    },
    notStored(projectId, { code, detail, events }) {
      if (hasRoom()) keep({ projectId, code, detail, status: 200, events });
    },
    latest: () => [...kept],
  };
}
