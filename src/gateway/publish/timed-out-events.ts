// Remembers the events without uuids of small requests that were answered `timeout`: their frame was
// sent, and not acknowledged in time. The client sends such a request again, and no reader can tell
// the second sending from the first. So an event that comes again waits for the frame that holds it
// already, and is not stored a second time. Events with uuids of their own are stored again. Only a
// project with remembered events has its events compared.

import type { ErrorCode } from "../../platform/base/errors.ts";
import { SentWith, type SentWithRuns } from "../../platform/base/sent-with.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import { Fate, type Frame } from "./frame.ts";
import type { FrameOutcome, FrameWaiter, RequestWaiter } from "./port.ts";

/** Maximum number of remembered events of one project, and of all. No more are remembered. */
const projectEventsMax = 4_096;
const eventsMax = 16_384;
/** As long as the streams know a frame that is sent again. */
const rememberedMs = 120_000;
/** Minimum time between two searches for old events. */
const forgetEveryMs = 1_000;
/**
 * What is remembered in one turn, in bytes of records and `eventCost` for each: to name a small
 * event takes 1 µs, and 1 KiB of a long one 2 µs. Further events of the turn are not
 * remembered.
 */
const remembersPerTurn = 4_194_304;
const eventCost = 1_024;
const lineFeed = 0x0a;

interface TimedOut {
  readonly fate: Fate;
  readonly untilMonotonicMs: number;
}

interface ProjectEvents {
  /** By identity. A client may send the same event several times, so there may be several. */
  readonly events: Map<string, TimedOut[]>;
  size: number;
  /** When the last of them is forgotten. */
  untilMonotonicMs: number;
}

interface TimedOutEventsOptions {
  /** Names an event, given its record: the same each time that the event is sent. */
  readonly identify: (record: Buffer, sentWith: SentWith) => string;
  readonly monotonicMs: () => number;
}

/** Waits for lines of a request that may have to be recognized when they come again. */
export class UuidlessLines implements FrameWaiter {
  readonly request: RequestWaiter;
  readonly projectId: string;
  runs: SentWithRuns;

  constructor(request: RequestWaiter, projectId: string, runs: SentWithRuns) {
    this.request = request;
    this.projectId = projectId;
    this.runs = runs;
  }

  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void {
    this.request.frameSettled(outcome, code, events, bytes, messageBytes);
  }
}

export class TimedOutEvents {
  readonly #options: TimedOutEventsOptions;
  readonly #projects = new Map<string, ProjectEvents>();
  readonly #budget = new TurnBudget(remembersPerTurn);
  #size = 0;
  #forgetMonotonicMs = 0;

  constructor(options: TimedOutEventsOptions) {
    this.#options = options;
  }

  /** Whether events of the project are remembered. */
  has(projectId: string): boolean {
    if (this.#size === 0) return false;
    const project = this.#projects.get(projectId);
    if (project === undefined) return false;
    if (project.untilMonotonicMs > this.#options.monotonicMs()) return true;
    this.#forgetProject(projectId, project);
    return false;
  }

  /** Remembers the events in these bytes of the frame, which is still under way. */
  remember(
    frame: Frame,
    lines: UuidlessLines,
    { start, end }: { start: number; end: number },
  ): void {
    const monotonicMs = this.#options.monotonicMs();
    frame.fate ??= new Fate(frame);
    const event = { fate: frame.fate, untilMonotonicMs: monotonicMs + rememberedMs };
    for (const { from, to, sentWith } of linesOf(frame.buffer, { start, end }, lines.runs)) {
      if (sentWith === SentWith.Uuid) continue;
      if (this.#budget.isSpent || !this.#hasRoom(lines.projectId, monotonicMs)) return;
      this.#budget.spend(to - from + eventCost);
      this.#add(
        lines.projectId,
        this.#options.identify(frame.buffer.subarray(from, to), sentWith),
        event,
      );
    }
  }

  /**
   * Takes the remembered events out of those lines of the frame that no waiter has joined with.
   * Returns how many were taken, by what became of their frame. They are remembered again if the
   * request fails.
   */
  takeOut(frame: Frame, lines: UuidlessLines): Map<Fate, number> {
    const { projectId } = lines;
    const taken = new Map<Fate, number>();
    const again: [string, TimedOut][] = [];
    const { buffer } = frame;
    const span = { start: frame.joinedBytes, end: frame.length };
    const runs: number[] = [];
    let runOf: SentWith = SentWith.Uuid;
    let keptTo = span.start;
    let kept = 0;
    for (const { from, to, sentWith } of linesOf(buffer, span, lines.runs)) {
      if (sentWith !== SentWith.Uuid) {
        const identity = this.#options.identify(buffer.subarray(from, to), sentWith);
        const known = this.#take(projectId, identity);
        if (known !== undefined) {
          taken.set(known.fate, 1 + (taken.get(known.fate) ?? 0));
          again.push([identity, known]);
          continue;
        }
      }
      if (keptTo < from) buffer.copyWithin(keptTo, from, to);
      keptTo += to - from;
      if (sentWith !== runOf) runs.push(kept, sentWith);
      runOf = sentWith;
      kept++;
    }
    if (again.length === 0) return taken;
    lines.runs = runs;
    frame.commit(keptTo, kept - (frame.events - frame.joinedEvents));
    lines.request.whenEnded((isStored) => {
      if (!isStored) for (const [identity, known] of again) this.#add(projectId, identity, known);
    });
    return taken;
  }

  #take(projectId: string, identity: string): TimedOut | undefined {
    const project = this.#projects.get(projectId);
    const known = project?.events.get(identity);
    if (project === undefined || known === undefined) return undefined;
    const monotonicMs = this.#options.monotonicMs();
    let event: TimedOut | undefined;
    do {
      event = known.shift();
      if (event === undefined) break;
      project.size--;
      this.#size--;
    } while (!isValid(event, monotonicMs));
    if (known.length === 0) project.events.delete(identity);
    if (project.size === 0) this.#projects.delete(projectId);
    return event;
  }

  #add(projectId: string, identity: string, event: TimedOut): void {
    let project = this.#projects.get(projectId);
    if (project === undefined) {
      project = { events: new Map(), size: 0, untilMonotonicMs: 0 };
      this.#projects.set(projectId, project);
    }
    const known = project.events.get(identity);
    if (known === undefined) project.events.set(identity, [event]);
    else known.push(event);
    project.size++;
    this.#size++;
    project.untilMonotonicMs = Math.max(project.untilMonotonicMs, event.untilMonotonicMs);
  }

  #hasRoom(projectId: string, monotonicMs: number): boolean {
    const isFull = (): boolean =>
      this.#size >= eventsMax || (this.#projects.get(projectId)?.size ?? 0) >= projectEventsMax;
    if (!isFull()) return true;
    if (monotonicMs < this.#forgetMonotonicMs) return false;
    this.#forgetMonotonicMs = monotonicMs + forgetEveryMs;
    for (const [id, project] of this.#projects) this.#forgetOld(id, project, monotonicMs);
    return !isFull();
  }

  #forgetOld(projectId: string, project: ProjectEvents, monotonicMs: number): void {
    for (const [identity, known] of project.events) {
      const valid = known.filter((event) => isValid(event, monotonicMs));
      project.size -= known.length - valid.length;
      this.#size -= known.length - valid.length;
      if (valid.length === 0) project.events.delete(identity);
      else project.events.set(identity, valid);
    }
    if (project.size === 0) this.#projects.delete(projectId);
  }

  #forgetProject(projectId: string, { size }: ProjectEvents): void {
    this.#projects.delete(projectId);
    this.#size -= size;
  }
}

/** False for an event of a frame that is not stored, or whose outcome will never be known. */
function isValid({ fate, untilMonotonicMs }: TimedOut, monotonicMs: number): boolean {
  return untilMonotonicMs > monotonicMs && (fate.frame !== undefined || fate.isStored);
}

/** Where each line begins and ends, its line feed included, and what its event was sent with. */
function* linesOf(
  buffer: Buffer,
  { start, end }: { start: number; end: number },
  runs: SentWithRuns,
): Generator<{ from: number; to: number; sentWith: SentWith }> {
  let sentWith: SentWith = SentWith.Uuid;
  let run = 0;
  for (let from = start, line = 0; from < end; line++) {
    if (line === runs[run]) {
      sentWith = runs[run + 1] as SentWith;
      run += 2;
    }
    const feedAt = buffer.indexOf(lineFeed, from);
    const to = feedAt < 0 ? end : Math.min(end, feedAt + 1);
    yield { from, to, sentWith };
    from = to;
  }
}
