// What one project may have in a stream beside others. Pure arithmetic; who has how much is asked
// elsewhere.

/**
 * So many projects are counted at most, so nobody's part falls below a sixty-fourth of the stream,
 * which is little in any.
 */
const projectsCountedMax = 64;

export interface StreamRoom {
  readonly bytesMax: number;
  /** Below 0 where more is on its way than fits. */
  readonly bytesFree: number;
  /** Those that have something in the stream. */
  readonly projects: number;
}

/**
 * What a project may have in the stream while it adds to it, where `projectShare` per cent (below
 * 100) is what one alone may fill. Either so many times what is free, which leaves the more free
 * the fewer have much. Or, where that is more, what each would have if all of them filled the
 * stream like this: whoever has no more is not why nothing is free, and all of them together still
 * leave something free.
 */
export function mayHaveBytes(room: StreamRoom, projectShare: number): number {
  const timesFree = projectShare / (100 - projectShare);
  const projects = Math.min(Math.max(1, room.projects), projectsCountedMax);
  const likeAll = (room.bytesMax * timesFree) / (1 + timesFree * projects);
  return Math.max(timesFree * Math.max(0, room.bytesFree), likeAll);
}
