// Removes distinct ids from the stored activity of a project.

type Named = readonly [id: string, ...rest: unknown[]];

/** `text`: in the format of ProjectActivity. */
export function activityWithout(text: string, ids: ReadonlySet<string>): string {
  const parts = JSON.parse(text) as unknown[];
  const others = (some: readonly Named[]) => some.filter(([id]) => !ids.has(id));
  const [hotSpikes, open] = parts.slice(hotSpikesAt, hotSpikesAt + 2) as [
    readonly Named[],
    readonly (readonly [minute: number, count: number, hot: readonly Named[] | null])[],
  ];
  parts[hotSpikesAt] = others(hotSpikes);
  parts[hotSpikesAt + 1] = open.map(([minute, count, hot]) => [minute, count, hot && others(hot)]);
  return JSON.stringify(parts);
}

const hotSpikesAt = 5;
