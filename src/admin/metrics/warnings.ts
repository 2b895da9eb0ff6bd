// The last things that went wrong for clients, for people who watch. A small ring: what is new
// pushes out what is old, and of a flood only the first few a second are kept, so that it costs
// what a flood may. What goes wrong again for the same project, path and client is one remark that
// counts. Holds no value of an event, and no key: of one that nobody has its beginning.

import { errorTable, type Problem } from "../../base/errors.ts";
import type { Remark, RemarkOrigin, RemarkTaker } from "../../base/types.ts";

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

  /** Of this second. */
  function used(): number {
    const nowMs = monotonicMs();
    if (nowMs - secondStartMs >= secondMs) {
      secondStartMs = nowMs;
      inSecond = 0;
    }
    return inSecond;
  }

  function keep(
    origin: RemarkOrigin,
    what: Pick<Remark, "status" | "code" | "detail" | "events">,
  ): void {
    if (used() >= perSecondMax) return;
    inSecond++;
    const { projectId, path, client } = origin;
    const remark = { atMs: wallMs(), projectId, path, client, times: 1, ...what };
    const at = kept.findIndex((earlier) => isAlike(earlier, remark));
    const [earlier] = at >= 0 ? kept.splice(at, 1) : [];
    if (kept.length === keptMax) kept.shift();
    kept.push(
      earlier === undefined
        ? remark
        : { ...remark, times: earlier.times + 1, events: earlier.events + remark.events },
    );
  }

  return {
    get hasRoom() {
      return used() < perSecondMax;
    },
    refused(origin, { code, detail }: Problem) {
      keep(origin, { code, detail, status: errorTable[code].status, events: 0 });
    },
    notStored(origin, { code, detail, events }) {
      keep(origin, { code, detail, status: 200, events });
    },
    latest: () => [...kept],
  };
}

/** The same went wrong for the same; what is said of it may differ. */
function isAlike(left: Remark, right: Remark): boolean {
  return (
    left.code === right.code &&
    left.status === right.status &&
    left.projectId === right.projectId &&
    left.path === right.path &&
    left.client === right.client
  );
}
