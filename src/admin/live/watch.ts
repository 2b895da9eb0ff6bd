// What goes on while somebody watches, and not a moment longer: a look at the counts once a second,
// a connection to NATS, and a tail for each project that is watched. All of it begins with the
// first viewer and ends with the last.

import type { NatsConnection } from "@nats-io/nats-core";
import { createFeed, type Feed } from "./feed.ts";
import { type LiveSource, lookAt } from "./snapshot.ts";
import { openStoreSession, type StoreSession } from "./store-session.ts";
import { type TailSource, tail } from "./tail.ts";
import type { Viewer } from "./viewer.ts";

export interface WatchOptions extends LiveSource {
  readonly connect: () => Promise<NatsConnection>;
  readonly subjectPrefix: string;
  /** Where a project's events are, or all projects'. */
  readonly sourcesOf: (project: string | undefined) => readonly TailSource[];
  /** Whether there is a project of that id. Without it nobody is told. */
  readonly isThere?: (connection: NatsConnection, project: string) => Promise<boolean>;
  /** Whether events are shown at all. */
  readonly showsEvents: boolean;
  readonly monotonicMs: () => number;
}

export interface Watch {
  /** `project` undefined: all. The answer takes the viewer out again. */
  add(viewer: Viewer, project: string | undefined): () => void;
  readonly viewers: number;
  close(): Promise<void>;
}

interface Running {
  readonly session: StoreSession;
  readonly stop: () => void;
}

interface Channel {
  readonly feed: Feed;
  readonly viewers: Set<Viewer>;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

const lookEveryMs = 1_000;
const pushEveryMs = 250;

export function createWatch(options: WatchOptions): Watch {
  /** With the warnings that each was sent last: they go out only when they are news to it. */
  const viewers = new Map<Viewer, string>();
  const channels = new Map<string | undefined, Channel>();
  const ending = new Set<Promise<void>>();
  let running: Running | undefined;

  function start(): Running {
    const session = openStoreSession(options);
    const look = lookAt(options, session);
    const show = async (): Promise<void> => {
      const { state, clientWarnings } = await look(viewers.size);
      for (const [viewer, sent] of viewers) {
        viewer.send("state", state);
        if (clientWarnings !== sent && viewer.send("clientWarnings", clientWarnings))
          viewers.set(viewer, clientWarnings);
        if (viewer.isStuck()) viewer.end();
      }
    };
    void show();
    const looks = setInterval(() => void show(), lookEveryMs);
    const pushes = setInterval(push, pushEveryMs);
    const stop = (): void => {
      clearInterval(looks);
      clearInterval(pushes);
    };
    return { session, stop };
  }

  function push(): void {
    for (const channel of channels.values()) pushTo(channel);
  }

  function pushTo({ feed, viewers }: Channel): void {
    const batch = feed.flush();
    for (const viewer of viewers) viewer.push(batch);
  }

  function open(project: string | undefined, session: StoreSession): Channel {
    const feed = createFeed(project, options.monotonicMs);
    const stop = new AbortController();
    const ended = session.connection.then(async (connection) => {
      if (connection === undefined || stop.signal.aborted) return;
      const sources = options.sourcesOf(project);
      await tail({
        connection,
        sources,
        onFrame: feed.take,
        onPassedOver: feed.passedOver,
        signal: stop.signal,
      });
    });
    return { feed, viewers: new Set(), stop, ended };
  }

  function add(viewer: Viewer, project: string | undefined): () => void {
    viewers.set(viewer, "");
    running ??= start();
    if (options.showsEvents) join(viewer, project, running);
    return () => {
      if (!viewers.delete(viewer)) return;
      leave(viewer, project);
      if (viewers.size === 0) stop();
    };
  }

  function join(viewer: Viewer, project: string | undefined, { session }: Running): void {
    const channel = channels.get(project) ?? open(project, session);
    channels.set(project, channel);
    // What waits for the next push is among the recent ones too, and is not to come twice.
    pushTo(channel);
    channel.viewers.add(viewer);
    viewer.push({ events: channel.feed.recent(), skipped: 0 });
    // Asked beside: the first events do not wait for it.
    if (project !== undefined) void tellIfUnknown(viewer, project, session);
  }

  /**
   * One that is mistyped has no event, ever; one that is to come has some. So it is watched all the
   * same.
   */
  async function tellIfUnknown(
    viewer: Viewer,
    project: string,
    { connection }: StoreSession,
  ): Promise<void> {
    try {
      const open = await connection;
      if (open === undefined || (await options.isThere?.(open, project)) !== false) return;
      if (viewers.has(viewer)) viewer.send("unknown", JSON.stringify({ project }));
    } catch {
      // Where the registry cannot be read nobody knows, and why is among the reasons for not being
      // ready.
    }
  }

  function leave(viewer: Viewer, project: string | undefined): void {
    const channel = channels.get(project);
    channel?.viewers.delete(viewer);
    if (channel === undefined || channel.viewers.size > 0) return;
    channels.delete(project);
    channel.stop.abort();
    untilDone(channel.ended);
  }

  /** Tails take their consumers down before the connection goes. */
  function stop(): void {
    const ended = running;
    running = undefined;
    ended?.stop();
    if (ended !== undefined) untilDone(Promise.all(ending).then(() => ended.session.close()));
  }

  function untilDone(work: Promise<void>): void {
    const done = work.finally(() => ending.delete(done));
    ending.add(done);
  }

  async function close(): Promise<void> {
    for (const viewer of viewers.keys()) viewer.end();
    for (const [project, { viewers }] of channels)
      for (const viewer of viewers) leave(viewer, project);
    viewers.clear();
    stop();
    await Promise.all(ending);
  }

  return {
    add,
    get viewers() {
      return viewers.size;
    },
    close,
  };
}
