import fc from "fast-check";
import type { Commit, MemberRow, PersonState } from "../../../../src/readers/effects/types.ts";
import { hostileTexts } from "./hostile-texts.ts";
import {
  commitOf,
  groupRow,
  joined,
  linkRow,
  mergedRow,
  noon,
  personRow,
  positionRow,
  project,
  propertiesOf,
  rejectedRow,
  stampOf,
} from "./row-kit.ts";

interface Step {
  readonly what: "see" | "set" | "merge" | "group" | "count" | "reject";
  readonly a: string;
  readonly b: string;
  readonly n: number;
  readonly json: string;
  readonly endsCommit: boolean;
}

const ids = [...hostileTexts.filter(({ length }) => length < 60), "a", "B", "é", "ﬀ", "😀", "zz"];
const values = ["1.10", "-0.0", "1e400", "null", '"x"', "[1,{}]", "12345678901234567890"];

export const history: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    what: fc.constantFrom("see", "see", "set", "merge", "merge", "group", "count", "reject"),
    a: fc.constantFrom(...ids),
    b: fc.constantFrom(...ids),
    n: fc.nat({ max: 300 }),
    json: fc.oneof(
      fc.constantFrom(...values),
      fc.jsonValue().map((one) => JSON.stringify(one)),
    ),
    endsCommit: fc.nat({ max: 5 }).map((one) => one === 0),
  }),
  { minLength: 60, maxLength: 150 },
);

export function commitsOf(steps: readonly Step[]): Commit[] {
  const people = new Map<string, MemberRow>();
  const commits: Commit[] = [];
  let [changed, parts] = [new Set<string>(), emptyParts()];
  for (const [at, step] of steps.entries()) {
    for (const id of change(people, step)) changed.add(id);
    note(parts, step, at + 1);
    if (!step.endsCommit && at < steps.length - 1) continue;
    const members = [...changed].map((id) => people.get(id)!);
    commits.push(commitOf(commits.length, { ...parts, members, positions: [positionRow(at)] }));
    [changed, parts] = [new Set(), emptyParts()];
  }
  return commits;
}

function change(people: Map<string, MemberRow>, { what, a, b, n, json }: Step): string[] {
  const touched = [a, ...(what === "merge" ? [b] : [])].filter((id) => !people.has(id));
  for (const id of touched) people.set(id, personRow(id, { n }));
  if (what === "set") {
    const root = rootOf(people, a);
    const properties = joined(root.person!.properties, propertiesOf({ [b]: json }));
    touched.push(replace(people, root, { properties, lastSeenAtMs: noon + n }));
  }
  const [from, to] = [rootOf(people, a), rootOf(people, b)];
  if (what !== "merge" || from === to) return touched;
  const { person, first } = from;
  const other = to.person!;
  const isFirst = first.timeMs < other.firstStamp.timeMs;
  people.set(from.distinctId, {
    ...mergedRow(from.distinctId, to.distinctId),
    first,
  });
  const shown = isFirst
    ? { firstId: from.distinctId, firstUuid: from.uuid, firstStamp: first }
    : {};
  replace(people, to, {
    ...shown,
    mainId: b,
    mainStamp: stampOf(n),
    known: true,
    idsTotal: other.idsTotal + person!.idsTotal,
    properties: joined(person!.properties, other.properties),
  });
  return [...touched, from.distinctId, to.distinctId];
}

function replace(
  people: Map<string, MemberRow>,
  row: MemberRow,
  parts: Partial<PersonState>,
): string {
  const person = { ...row.person!, ...parts, version: row.person!.version + 1 };
  people.set(row.distinctId, { ...row, person });
  return row.distinctId;
}

function rootOf(people: ReadonlyMap<string, MemberRow>, id: string): MemberRow {
  let row = people.get(id) ?? personRow(id);
  while (row.mergedInto !== undefined) row = people.get(row.mergedInto)!;
  return row;
}

function emptyParts() {
  const { links, groups, groupTypes, groupMembers, usage, rejected } = commitOf(0, {});
  return {
    links: [...links],
    groups: [...groups],
    groupTypes: [...groupTypes],
    groupMembers: [...groupMembers],
    usage: [...usage],
    rejected: [...rejected],
  };
}

function note(parts: ReturnType<typeof emptyParts>, step: Step, at: number): void {
  const { what, a, b, n, json } = step;
  const day = `2026-11-${String(10 + (n % 9))}`;
  const usage = { projectId: project, day, lane: "live", class: "identified" } as const;
  if (what === "count") parts.usage.push({ ...usage, events: n, duplicates: n % 7 });
  if (what === "merge") parts.links.push(linkRow(at, a, b));
  if (what === "reject") parts.rejected.push(rejectedRow(at, { detail: `${a} ${json}` }));
  if (what !== "group") return;
  const member = { projectId: project, type: a, key: b, distinctId: a };
  parts.groupMembers.push({ ...member, firstSeenAtMs: noon + n });
  if (parts.groups.some(({ type, key }) => type === a && key === b)) return;
  parts.groupTypes.push({ projectId: project, type: a });
  parts.groups.push(groupRow(b, { type: a, properties: propertiesOf({ [a]: json }), version: at }));
}
