import { expect, test } from "vitest";
import { ruledProject, textOf, uuidOf } from "../../faults/rules/ruled-events.ts";
import type { Attempt, RuledRequest } from "../../faults/rules/ruled-senders.ts";
import { RulesLedger } from "../../faults/rules/rules-ledger.ts";
import { fileOf } from "../../faults/rules/rules-texts.ts";

const never = { name: "never-stored", match: { event: "never" }, drop: true };
const texts = [
  [never, { name: "no-emails", remove: ["email"] }],
  [
    never,
    { name: "wrong", match: { event: "viewed" }, quarantine: true },
    { name: "stamp", match: { event: ["heartbeat", "ping*", "s*", "order"] }, set: { stamp: 2 } },
  ],
].map((rules) => JSON.stringify({ rules }));
const versions = new Map(
  texts.map((text, at) => [
    at + 1,
    { version: at + 1, text, file: fileOf(text), atMs: at * 1_000 },
  ]),
);
const count = 10;
/** Of ten events, one is `never`, one `plain` and one `viewed`. */
const [dropped, plain, quarantined] = [7, 8, 9];

interface Run {
  readonly requests: RuledRequest[];
  /** Records by number. */
  readonly records: Map<number, Record<string, unknown>[]>;
  readonly rejected: Map<number, Record<string, unknown>>;
}

function answered(sentMs: number, accepted: number): Attempt {
  const times = { sentMs, answeredMs: sentMs + 10 };
  return { ...times, verdict: "answered", label: "200", accepted, filtered: count - accepted };
}

function recordOf(number: number, version: number): Record<string, unknown> {
  const record = JSON.parse(textOf(number, "batch")) as { properties: Record<string, unknown> };
  if (version === 1) delete record.properties["email"];
  else if (number % count !== plain) record.properties["stamp"] = 2;
  const { $set } = record.properties;
  const isChanged = version === 1 || number % count !== plain;
  const more = { project_id: ruledProject, ip: "127.0.0.1", historical: false, $set };
  return { ...record, ...more, ...(isChanged ? { rules: version } : {}) };
}

/** A request that a version has answered, and what is then stored. */
function add({ requests, records, rejected }: Run, version: number, sentMs: number): void {
  const first = requests.length * count;
  const filtered = version === 1 ? [dropped] : [dropped, quarantined];
  const attempts = [answered(sentMs, count - filtered.length)];
  requests.push({ form: "batch", first, count, attempts });
  for (let at = 0; at < count; at++)
    if (!filtered.includes(at)) records.set(first + at, [recordOf(first + at, version)]);
  if (version === 2) rejected.set(first + quarantined, rejectedOf(first + quarantined));
}

function rejectedOf(number: number): Record<string, unknown> {
  const about = { id: uuidOf(number), project_id: ruledProject, received_at: "", lane: "live" };
  return { ...about, reason: "rule", rule: "wrong", rules: 2, item: textOf(number, "batch") };
}

function settled(change: (run: Run) => void) {
  const run: Run = { requests: [], records: new Map(), rejected: new Map() };
  add(run, 1, 2_000);
  add(run, 2, 3_000);
  change(run);
  const secret = Buffer.from("secret");
  const { requests } = run;
  const ledger = new RulesLedger({
    requests,
    versions,
    secret,
    last: undefined,
    isOneProcess: true,
  });
  const line = (value: unknown) => `${JSON.stringify(value)}\n`;
  for (const records of run.records.values()) ledger.take("live", records.map(line).join(""));
  for (const item of run.rejected.values()) ledger.take("rejected", line(item));
  ledger.settle();
  return ledger;
}

test("the ledger of the load rules counts each event by its end", () => {
  const { faults, totals } = settled(() => {});
  expect(faults).toEqual([]);
  expect(totals).toMatchObject({ acknowledged: 20, stored: 17, dropped: 2, quarantined: 1 });
  expect(totals).toMatchObject({ notInLane: 0, storedAgain: 0, unanswered: 0, versionsUsed: 2 });
});

const again = (attempts: Attempt[]) =>
  attempts.unshift({ sentMs: 1_500, answeredMs: 1_600, verdict: "unknown", label: "503 timeout" });

test("the ledger allows what a request with an unknown attempt may store", () => {
  const { faults, totals } = settled(({ requests, records }) => {
    again(requests[1]!.attempts);
    records.get(11)!.push(recordOf(11, 1));
    records.set(10 + quarantined, [recordOf(10 + quarantined, 1)]);
  });
  expect(faults).toEqual([]);
  expect(totals).toMatchObject({ acknowledged: 20, stored: 17, quarantined: 1, storedAgain: 1 });
});

test.each<[string, (run: Run) => void, string]>([
  ["a lost event", ({ records }) => records.delete(3), "event 3 is lost"],
  [
    "an event that is stored twice",
    ({ records }) => records.get(3)!.push(recordOf(3, 1)),
    "event 3 is stored 2 times",
  ],
  [
    "an event that every version drops, in a record",
    ({ records }) => records.set(dropped, [recordOf(dropped, 1)]),
    "event 7 (batch) is not what version 1 makes of it",
  ],
  [
    "a property that the version removes",
    ({ records }) => records.set(3, [{ ...recordOf(3, 2), rules: 1 }]),
    "event 3 (batch) is not what version 1 makes of it",
  ],
  [
    "an event that the version leaves as it is, with a version",
    ({ records }) => records.set(10 + plain, [{ ...recordOf(10 + plain, 2), rules: 2 }]),
    "event 18 (batch) is not what version 2 makes of it",
  ],
  [
    "a version that never existed",
    ({ records }) => records.set(3, [{ ...recordOf(3, 1), rules: 3 }]),
    "event 3 (batch) has version 3, which never existed",
  ],
  [
    "a record of another version than the others of its request",
    ({ records }) => records.set(3, [recordOf(3, 2)]),
    "no version explains the answer",
  ],
  [
    "a wrong count in an answer",
    ({ requests }) => requests[0]!.attempts.splice(0, 1, answered(2_000, 10)),
    "9 events are accepted",
  ],
  [
    "a version before it was applied",
    ({ requests }) => requests[1]!.attempts.splice(0, 1, answered(500, 8)),
    "no version explains the answer",
  ],
  [
    "a stored event in the rejected lane",
    ({ rejected }) => rejected.set(13, rejectedOf(13)),
    "event 13 (stored) is in the rejected lane",
  ],
  [
    "an older version after a newer one",
    ({ requests }) => requests[0]!.attempts.splice(0, 1, answered(5_000, 9)),
    "version 1 was used after version 2 had been used",
  ],
])("the ledger reports %s", (_, change, fault) => {
  const { faults } = settled(change);
  expect(faults.join("\n")).toContain(fault);
});
