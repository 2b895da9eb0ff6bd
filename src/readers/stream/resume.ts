// Where the reading of a stream goes on, and what has happened to the stream meanwhile. A stream
// may be made anew, replaced by an older copy, or lose messages before they were read; each leaves
// an incident. Only the message ids of the trail tell what was read: numbers are given out again,
// and a server's clock may be behind. What they do not tell stops the stream.

import { msOfTime } from "./frame.ts";
import type { IncidentKind } from "./incidents.ts";
import type { AskedStream, StreamState } from "./stored-stream.ts";
import { messagesIn, type Trail, toldTo, trailToldTo } from "./trail.ts";

/** How far a stream was read. */
export interface Place {
  /** Goes up whenever the stream's numbers begin to mean something else. */
  readonly epoch: number;
  readonly created: string;
  readonly sequence: number;
  /** The newest messages that were read, newest last. */
  readonly trail: Trail;
}

/** What becomes a row of incidents. */
export interface Incident {
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  readonly messages: number;
  readonly detail: string;
}

export interface Resume {
  readonly place: Place;
  readonly incidents: readonly Incident[];
  /** Why the stream is not read on; undefined: it is. */
  readonly fault: string | undefined;
}

/**
 * How the messages that were read compare with those that are there under their numbers. `at` is
 * the index in the trail of the newest that is still the same: -1 when all are others. Undefined:
 * none of them is there any more, so nothing can be said.
 */
interface Comparison {
  readonly at: number | undefined;
  /** Index of the newest in the trail that could be compared. */
  readonly newest: number;
}

/** What may have been read of a stream that shares nothing with the trail. */
interface Doubt {
  /** Messages that are there, from the first one on. */
  readonly held: number;
  /** Messages that have left it. */
  readonly gone: number;
  /** All that is there was stored after what was read, if the servers' clocks are right. */
  readonly isNewer: boolean;
  /**
   * The stream was made before the last that was read was stored. One name is one stream in a NATS,
   * so what was read was in another one, or what is there was put back.
   */
  readonly isElder: boolean;
  /** The last of those held that was stored before the last that was read; 0: none. */
  readonly olderTo: number;
}

/** What the texts say of the program that reads. */
export interface ReaderWords {
  /** Whoever calls this goes on. */
  readonly wayOut: string;
  /** What is true of messages that were read, and are no longer in the stream. */
  readonly stays: string;
  /**
   * What comes of messages that are read a second time: those up to `olderTo` are as old as what
   * was read; 0: none.
   */
  readonly twice: (olderTo: number) => string;
}

interface ResumeOptions {
  /** Goes on behind messages that have left the stream unread, or that may have been read. */
  readonly acceptExpired: boolean;
  /** Before the stream's first message, where erased ones still have what stands in their place. */
  readonly standingFrom?: number;
  /** Default: none, for whoever goes on in any case and shows no text. */
  readonly words?: ReaderWords | undefined;
}

const noWords: ReaderWords = { wayOut: "", stays: "", twice: () => "" };

/** Rejects when NATS does not answer. Without a place, the stream was never read. */
export async function resume(
  place: Place | undefined,
  stream: AskedStream,
  state: StreamState,
  options: ResumeOptions,
): Promise<Resume> {
  if (place === undefined) return begin({ ...options, epoch: 1 }, state, []);
  // Where nothing was read, nothing can be mistaken for it.
  if (place.sequence === 0 && place.created !== state.created)
    return begin({ ...options, epoch: place.epoch }, state, []);
  const trail = messagesIn(place.trail);
  const comparison = await compare(trail, stream, state);
  const isOther = place.created !== state.created || lostFrom(place, state, comparison);
  const isAsked = isOther && (comparison.at ?? -1) < 0;
  const doubt = isAsked ? await doubtOf(trail, stream, state) : noDoubt;
  return decide(place, state, { ...options, comparison, doubt });
}

interface Facts extends ResumeOptions {
  readonly comparison: Comparison;
  /** Decides where nothing that the trail remembers is the same. */
  readonly doubt: Doubt;
}

/** The rules alone. */
export function decide(place: Place, state: StreamState, facts: Facts): Resume {
  const { comparison, doubt, words = noWords } = facts;
  const trail = messagesIn(place.trail);
  const at = comparison.at ?? -1;
  const isAnother = place.created !== state.created && at < 0;
  const isInDoubt = at < 0 && doubt.held + doubt.gone > 0;
  // All of it is read, so that a clock that was wrong leaves nothing out.
  const isElder = isAnother && doubt.isElder;
  if (isAnother && !isElder && (trail.length === 0 || doubt.isNewer || !isInDoubt)) {
    const epoch = place.epoch + 1;
    const incident = {
      kind: "stream_made_anew",
      epoch,
      sequence: state.firstSequence - 1,
      messages: 0,
      detail: `the stream was made anew at ${state.created}; it was read up to ${place.sequence}`,
    } as const;
    return begin({ ...facts, epoch }, state, [incident]);
  }
  const known = { ...place, created: state.created };
  if (!isAnother && !lostFrom(place, state, comparison))
    return checkExpired(known, state, facts, []);
  if (isInDoubt || isElder) return inDoubt(place, state, facts);
  const sequence = at >= 0 ? trail[at]!.sequence : state.firstSequence - 1;
  const back: Place = {
    ...known,
    epoch: place.epoch + 1,
    sequence,
    trail: trail.slice(0, at + 1),
  };
  const messages = place.sequence - sequence;
  const incident = {
    kind: "tail_lost",
    epoch: back.epoch,
    sequence,
    messages,
    detail: `the stream has lost ${messages} messages that were read, from ${sequence + 1} to ${place.sequence}; ${words.stays}`,
  } as const;
  return checkExpired(back, state, facts, [incident]);
}

function begin(
  { epoch, standingFrom }: Pick<ResumeOptions, "standingFrom"> & Pick<Place, "epoch">,
  state: StreamState,
  before: readonly Incident[],
): Resume {
  const { created, firstSequence, beginsAt } = state;
  const sequence = firstSequence - 1;
  const messages = firstSequence - beginsAt;
  const from = standingFrom ?? firstSequence;
  const trail = from < firstSequence ? trailToldTo([], sequence) : [];
  const place: Place = { epoch, created, sequence: from - 1, trail };
  const late: Incident[] = [
    {
      kind: "begun_late",
      epoch,
      sequence,
      messages,
      detail: `${messages} messages had left the stream before it was first read`,
    },
  ];
  return { place, incidents: messages > 0 ? [...before, ...late] : before, fault: undefined };
}

/** Going on too late would leave messages out in silence, so somebody else has to decide. */
function inDoubt(
  place: Place,
  state: StreamState,
  { acceptExpired, doubt, words: { wayOut, twice } = noWords }: Facts,
): Resume {
  const { created, firstSequence } = state;
  const { held, gone, olderTo, isElder } = doubt;
  const epoch = place.epoch + 1;
  const sequence = firstSequence - 1;
  const those = [
    ...(held > 0 ? [`its ${held} messages from ${firstSequence} to ${sequence + held}`] : []),
    ...(gone > 0 ? [`the ${gone} that have left it`] : []),
  ].join(" and ");
  const is =
    isElder && place.created !== created
      ? `it was made at ${created}, before the last of them was stored: it is another one, as of another NATS, or an older copy`
      : "it is an older copy, or another one";
  const untold = held + gone > 0 ? `, and whether ${those} were read cannot be told` : "";
  const what = `the stream was read up to ${place.sequence} and has none of the newest messages that were read: ${is}${untold}`;
  const again = twice(olderTo);
  const fault = `${what}: ${wayOut} from message ${firstSequence}; ${again}`;
  const incident = {
    // By a `copy_accepted` of its epoch whoever goes on later, in another process too, knows up to
    // which sequence messages are counted already. A `place_unknown` must not be taken for that: no
    // place has its epoch yet, and another stream may get it.
    ...({ kind: acceptExpired ? "copy_accepted" : "place_unknown", epoch } as const),
    messages: held + gone,
    sequence: acceptExpired ? Math.max(sequence, olderTo) : sequence,
    detail: acceptExpired ? `${what}; gone on from ${firstSequence}, as told; ${again}` : what,
  };
  return {
    place: acceptExpired ? { epoch, created, sequence, trail: [] } : place,
    incidents: [incident],
    fault: acceptExpired ? undefined : fault,
  };
}

/** Whether messages that were read are no longer those that the stream has under their numbers. */
function lostFrom(place: Place, state: StreamState, { at, newest }: Comparison): boolean {
  return state.lastSequence < place.sequence || (at !== undefined && at < newest);
}

function checkExpired(
  place: Place,
  { firstSequence }: StreamState,
  { acceptExpired, standingFrom = firstSequence, words: { wayOut } = noWords }: ResumeOptions,
  incidents: readonly Incident[],
): Resume {
  const known = Math.max(place.sequence, toldTo(place));
  const messages = firstSequence - 1 - known;
  if (messages <= 0) return { place, incidents, fault: undefined };
  const what = `${messages} messages left the stream before they were read, from ${known + 1} to ${firstSequence - 1}`;
  const incident = {
    kind: "expired_unread",
    epoch: place.epoch,
    sequence: known,
    messages,
    detail: acceptExpired ? `${what}; gone on behind them, as told` : what,
  } as const;
  const trail =
    standingFrom < firstSequence ? trailToldTo(place.trail, firstSequence - 1) : place.trail;
  return {
    place: acceptExpired ? { ...place, sequence: standingFrom - 1, trail } : place,
    incidents: [...incidents, incident],
    fault: acceptExpired ? undefined : `${what}: ${wayOut} without them`,
  };
}

/**
 * Looks for the newest message of the trail that is still there. A copy that is older differs from
 * some message on, so halving finds it; messages that are gone from in between tell nothing.
 */
async function compare(
  trail: Trail,
  stream: AskedStream,
  { firstSequence, lastSequence }: StreamState,
): Promise<Comparison> {
  /** The nearest in the trail that can be compared, above `floor` and not above `from`. */
  const look = async (from: number, floor: number): Promise<Look | undefined> => {
    for (let at = from; at > floor && trail[at]!.sequence >= firstSequence; at--) {
      const message = await stream.message(trail[at]!.sequence);
      if (message !== undefined) return { at, isSame: message.messageId === trail[at]!.messageId };
    }
    return undefined;
  };
  const within = trail.findLastIndex(({ sequence }) => sequence <= lastSequence);
  const newest = await look(within, -1);
  if (newest === undefined) return { at: undefined, newest: -1 };
  if (newest.isSame) return { at: newest.at, newest: newest.at };
  let [same, other] = [-1, newest.at];
  while (other - same > 1) {
    const middle = (same + other) >> 1;
    const found = await look(middle, same);
    if (found?.isSame === false) other = found.at;
    else same = middle;
  }
  return { at: (await look(same, -1))?.at ?? -1, newest: newest.at };
}

interface Look {
  readonly at: number;
  readonly isSame: boolean;
}

const noDoubt: Doubt = { held: 0, gone: 0, isNewer: false, isElder: false, olderTo: 0 };
/** So far the clocks of two servers may be apart that say when a stream and a message came. */
const clockSkewMsMax = 60_000;

/**
 * A copy that shares nothing with the trail parts from what was read before the trail begins, and
 * what it has under the trail's numbers is known to be other messages.
 */
async function doubtOf(trail: Trail, stream: AskedStream, state: StreamState): Promise<Doubt> {
  const { created, firstSequence, lastSequence, beginsAt } = state;
  const newestMs = trail.reduce((newest, { storedAtMs }) => Math.max(newest, storedAtMs), 0);
  const first = await stream.messageFrom(firstSequence);
  const isNewer = trail.length > 0 && (first === undefined || first.storedAtMs > newestMs);
  const last = Math.min(lastSequence, (trail[0]?.sequence ?? Number.POSITIVE_INFINITY) - 1);
  return {
    held: isNewer ? 0 : Math.max(0, last - firstSequence + 1),
    gone: firstSequence - beginsAt,
    isNewer,
    isElder: msOfTime(created) + clockSkewMsMax < newestMs,
    olderTo: isNewer ? 0 : await olderTo(newestMs, stream, { from: firstSequence, to: last }),
  };
}

/** The last message between these that was stored by then; 0: none. */
async function olderTo(
  ms: number,
  stream: AskedStream,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  let [older, newer] = [from - 1, to + 1];
  while (newer - older > 1) {
    const middle = Math.floor((older + newer) / 2);
    const found = await stream.messageFrom(middle);
    const isOlder = found !== undefined && found.sequence < newer && found.storedAtMs <= ms;
    if (isOlder) older = found.sequence;
    else newer = middle;
  }
  return older < from ? 0 : older;
}
