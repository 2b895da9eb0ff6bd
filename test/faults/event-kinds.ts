// The load's kinds of request. The number of an event identifies its kind, position and project, so
// that every stored line can be compared with the sent event.

import { randomBytes } from "node:crypto";
import { createLedger, type Ledger } from "../../bench/load/ledger.ts";

export const loadNames = ["singles", "batches", "mixed", "projects", "rules"] as const;
export type LoadName = (typeof loadNames)[number];

/**
 * `single`, `batch` and `large` are live events; a large request has its own frames. `history` has
 * one project per connection. `bad` events must never be stored. The driver does not wait for the
 * answers to `given-up` requests.
 */
export const kinds = ["single", "batch", "large", "history", "bad", "given-up"] as const;
export type Kind = (typeof kinds)[number];

export interface KindOfEvent {
  readonly kind: Kind;
  readonly ledger: Ledger;
  readonly uuidPrefix: string;
  take(events: number, connection: number): number;
  projectOf(number: number): string;
  readonly projects: readonly string[];
}

export interface Events {
  readonly of: Readonly<Record<Kind, KindOfEvent>>;
  readonly projects: readonly string[];
  read(uuid: string): { readonly kind: KindOfEvent; readonly number: number } | undefined;
}

const liveProjects = ["web", "app", "server"];
const importProjects = ["import-a", "import-b", "import-c"];
export const historyConnections = importProjects.length;
const projectsOf: Readonly<Record<Exclude<Kind, "single">, readonly string[]>> = {
  batch: liveProjects,
  large: ["bulk"],
  history: importProjects,
  bad: liveProjects,
  "given-up": liveProjects,
};
const uuidPrefixLength = 24;

export function keyOf(project: string): string {
  return `phc_${project}`;
}

const eventsOfKindMax = { short: 500_000, full: 4_000_000 };
const manyProjects = 96;
const eventsOfManyMax = { short: 200_000, full: 1_000_000 };

export function createEventsOf(load: LoadName, form: "short" | "full" = "full"): Events {
  return load === "projects"
    ? createEvents(eventsOfManyMax[form], manyProjects)
    : createEvents(eventsOfKindMax[form]);
}

export function createEvents(eventsMax: number, singleProjects = liveProjects.length): Events {
  const single = [
    ...liveProjects,
    ...Array.from({ length: singleProjects - liveProjects.length }, (_, at) => `site-${at}`),
  ];
  const run = randomBytes(4).toString("hex");
  function kindOf(kind: Kind, index: number): KindOfEvent {
    const projects = kind === "single" ? single : projectsOf[kind];
    const taken = projects.map(() => 0);
    return {
      kind,
      ledger: createLedger(new SharedArrayBuffer(eventsMax * projects.length)),
      uuidPrefix: `${run}-000${index}-8000-8000-`,
      take(events, connection) {
        const range = connection % projects.length;
        const first = taken[range]!;
        if (first + events > eventsMax)
          throw new Error(`number events: more than ${eventsMax} of kind ${kind}`);
        taken[range] = first + events;
        return range * eventsMax + first;
      },
      projectOf: (number) => projects[Math.floor(number / eventsMax)] ?? "",
      projects,
    };
  }

  const all = kinds.map(kindOf);
  const byPrefix = new Map(all.map((kind) => [kind.uuidPrefix, kind]));
  return {
    of: Object.fromEntries(all.map((kind) => [kind.kind, kind])) as Record<Kind, KindOfEvent>,
    projects: [...new Set([...single, ...Object.values(projectsOf).flat()])],
    read(uuid) {
      const kind = byPrefix.get(uuid.slice(0, uuidPrefixLength));
      return kind === undefined
        ? undefined
        : { kind, number: Number.parseInt(uuid.slice(uuidPrefixLength), 16) };
    },
  };
}
