// How many bytes one project may have in a stream that it shares with others. Pure arithmetic; how
// much each project has is asked in `stream-fill.ts`.

/**
 * So many projects are counted at most, so nobody's part falls below a sixty-fourth of the stream,
 * which is little in any.
 */
const projectsCountedMax = 64;

interface StreamRoom {
  readonly bytesMax: number;
  /** Below 0 where more bytes are under way than fit. */
  readonly bytesFree: number;
  /** How many projects have something in the stream. */
  readonly projects: number;
}

/**
 * The most bytes that a project may have in the stream and still add to it. `projectShare` (below
 * 100) is the per cent that a project may fill while the others have nothing. The larger of two
 * amounts counts. One is a multiple of the bytes that are free: the fewer projects have much, the
 * more stays free. The other is the part that each project would have if all of them filled the
 * stream by this rule. A project that has no more than that part is not why nothing is free, and
 * all projects at that part together still leave some bytes free.
 */
export function mayHaveBytes(room: StreamRoom, projectShare: number): number {
  const timesFree = projectShare / (100 - projectShare);
  const projects = Math.min(Math.max(1, room.projects), projectsCountedMax);
  const likeAll = (room.bytesMax * timesFree) / (1 + timesFree * projects);
  return Math.max(timesFree * Math.max(0, room.bytesFree), likeAll);
}
