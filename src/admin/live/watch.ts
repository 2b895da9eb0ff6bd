// What goes on while somebody watches, and not a moment longer: a snapshot of the counts once a
// second, a connection to NATS, and a tail for each project that is watched. All of it begins with
// the first viewer and ends with the last.

import type { NatsConnection } from "@nats-io/nats-core";
import { Feed } from "./feed.ts";
import { type LiveSource, Snapshots } from "./snapshot.ts";
import { StoreSession } from "./store-session.ts";
import { type TailSource, tail } from "./tail.ts";
import type { Viewer } from "./viewer.ts";

export interface WatchOptions extends LiveSource {
  readonly connect: () => Promise<NatsConnection>;
  readonly subjectPrefix: string;
  /** The streams and subjects that hold the events of a project, or of all projects. */
  readonly sourcesOf: (project: string | undefined) => readonly TailSource[];
  /**
   * Whether a project with this id exists. Without this function no viewer is told that a project
   * is unknown.
   */
  readonly isThere?: (connection: NatsConnection, project: string) => Promise<boolean>;
  /** Whether events are shown at all. */
  readonly showsEvents: boolean;
  readonly monotonicMs: () => number;
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

const snapshotEveryMs = 1_000;
const pushEveryMs = 250;

export class Watch {
  readonly #options: WatchOptions;
  /**
   * Each viewer with the client warnings that were last sent to it: they are sent again only when
   * they have changed.
   */
  readonly #viewers = new Map<Viewer, string>();
  readonly #channels = new Map<string | undefined, Channel>();
  readonly #ending = new Set<Promise<void>>();
  #running: Running | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /**
   * Without `project` all projects are watched. Returns a function that takes the viewer out again.
   */
  add(viewer: Viewer, project: string | undefined): () => void {
    this.#viewers.set(viewer, "");
    this.#running ??= this.#start();
    if (this.#options.showsEvents) this.#join(viewer, project, this.#running);
    return () => {
      if (!this.#viewers.delete(viewer)) return;
      this.#leave(viewer, project);
      if (this.#viewers.size === 0) this.#stop();
    };
  }

  async close(): Promise<void> {
    for (const viewer of this.#viewers.keys()) viewer.end();
    for (const [project, { viewers }] of this.#channels)
      for (const viewer of viewers) this.#leave(viewer, project);
    this.#viewers.clear();
    this.#stop();
    await Promise.all(this.#ending);
  }

  #start(): Running {
    const session = new StoreSession(this.#options);
    const taken = new Snapshots(this.#options, session);
    const show = async (): Promise<void> => {
      const { state, clientWarnings } = await taken.take(
        this.#viewers.size,
        [...this.#channels.keys()].filter((project) => project !== undefined),
      );
      for (const [viewer, sent] of this.#viewers) {
        viewer.send("state", state);
        if (clientWarnings !== sent && viewer.send("clientWarnings", clientWarnings))
          this.#viewers.set(viewer, clientWarnings);
        if (viewer.isStuck()) viewer.end();
      }
    };
    void show();
    const snapshots = setInterval(() => void show(), snapshotEveryMs);
    const pushes = setInterval(() => this.#push(), pushEveryMs);
    const stop = (): void => {
      clearInterval(snapshots);
      clearInterval(pushes);
    };
    return { session, stop };
  }

  /**
   * The session closes after the tails have ended, because they remove their consumers over its
   * connection.
   */
  #stop(): void {
    const ended = this.#running;
    this.#running = undefined;
    ended?.stop();
    if (ended !== undefined)
      this.#untilDone(Promise.all(this.#ending).then(() => ended.session.close()));
  }

  #join(viewer: Viewer, project: string | undefined, { session }: Running): void {
    const channel = this.#channels.get(project) ?? this.#open(project, session);
    this.#channels.set(project, channel);
    // Events that wait for the next push are also among the recent ones. They are pushed before the
    // viewer joins, so that it does not get them twice.
    pushTo(channel);
    channel.viewers.add(viewer);
    viewer.push({ events: channel.feed.recent(), skipped: 0 });
    // Not awaited: the first events do not wait for this answer.
    if (project !== undefined) void this.#tellIfUnknown(viewer, project, session);
  }

  #open(project: string | undefined, session: StoreSession): Channel {
    const feed = new Feed(project, this.#options.monotonicMs);
    const stop = new AbortController();
    const ended = session.connection.then(async (connection) => {
      if (connection === undefined || stop.signal.aborted) return;
      await tail({
        connection,
        sources: this.#options.sourcesOf(project),
        onFrame: (message, wasThere) => feed.take(message, wasThere),
        onPassedOver: (messages) => feed.passedOver(messages),
        signal: stop.signal,
      });
    });
    return { feed, viewers: new Set(), stop, ended };
  }

  #leave(viewer: Viewer, project: string | undefined): void {
    const channel = this.#channels.get(project);
    channel?.viewers.delete(viewer);
    if (channel === undefined || channel.viewers.size > 0) return;
    this.#channels.delete(project);
    channel.stop.abort();
    this.#untilDone(channel.ended);
  }

  /**
   * Tells the viewer when no project has this id. The id is watched all the same: it may be
   * mistyped, and then no event ever comes, or the project may be added later.
   */
  async #tellIfUnknown(
    viewer: Viewer,
    project: string,
    { connection }: StoreSession,
  ): Promise<void> {
    try {
      const open = await connection;
      if (open === undefined || (await this.#options.isThere?.(open, project)) !== false) return;
      if (this.#viewers.has(viewer)) viewer.send("unknown", JSON.stringify({ project }));
    } catch {
      // When the registry cannot be read, nobody knows whether the project exists. Why it cannot is
      // among the reasons for not being ready.
    }
  }

  #push(): void {
    for (const channel of this.#channels.values()) pushTo(channel);
  }

  #untilDone(work: Promise<void>): void {
    const done = work.finally(() => this.#ending.delete(done));
    this.#ending.add(done);
  }
}

function pushTo({ feed, viewers }: Channel): void {
  const batch = feed.flush();
  for (const viewer of viewers) viewer.push(batch);
}
