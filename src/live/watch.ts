// Does the work for the viewers of the live page: one snapshot per second, a connection to NATS,
// and a tail for each filter in use. Without viewers, it only records the counts of the last
// minute.

import type { NatsConnection } from "@nats-io/nats-core";
import { Feed, type LiveFilter, type Viewer } from "./feed.ts";
import { countsOf, type LiveSource, Snapshots } from "./snapshot.ts";
import { StoreSession } from "./store-session.ts";
import { type TailSource, tail } from "./tail.ts";

export interface WatchOptions extends LiveSource {
  readonly connect: () => Promise<NatsConnection>;
  readonly subjectPrefix: string;
  readonly sourcesOf: (project: string | undefined) => readonly TailSource[];
  readonly projectIds: (
    connection: NatsConnection,
    project: string | undefined,
  ) => Promise<readonly string[]>;
  readonly monotonicMs: () => number;
}

interface Running {
  readonly session: StoreSession;
  readonly stop: () => void;
}

interface Channel {
  readonly project: string | undefined;
  readonly feed: Feed;
  readonly viewers: Set<Viewer>;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

const historyEveryMs = 5_000;
const historySamplesMax = 13;
const filteredMessagesBefore = 400;
const projectsSentMax = 1_000;
const snapshotEveryMs = 1_000;
const pushEveryMs = 250;

export class Watch {
  readonly #options: WatchOptions;
  readonly #viewers = new Map<Viewer, string>();
  readonly #channels = new Map<string, Channel>();
  readonly #ending = new Set<Promise<void>>();
  #running: Running | undefined;
  readonly #history: string[] = [];
  readonly #sampling: NodeJS.Timeout;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#sampling = setInterval(() => void this.#sample(), historyEveryMs).unref();
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** The connection to NATS; undefined without viewers, and before the first connection. */
  get connection(): Promise<NatsConnection | undefined> | undefined {
    return this.#running?.session.connection;
  }

  add(viewer: Viewer, filter: LiveFilter): () => void {
    this.#viewers.set(viewer, "");
    viewer.send("history", `[${this.#history.join(",")}]`);
    this.#running ??= this.#start();
    if (this.#options.showsEvents) this.#join(viewer, filter, this.#running);
    return () => {
      if (!this.#viewers.delete(viewer)) return;
      this.#leave(viewer, keyOf(filter));
      if (this.#viewers.size === 0) this.#stop();
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sampling);
    for (const viewer of this.#viewers.keys()) viewer.end();
    for (const [key, { viewers }] of this.#channels)
      for (const viewer of viewers) this.#leave(viewer, key);
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
        [...this.#channels.values()].flatMap(({ project }) => project ?? []),
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

  /** The session is closed last, because the tails use it to remove their consumers. */
  #stop(): void {
    const ended = this.#running;
    this.#running = undefined;
    ended?.stop();
    if (ended !== undefined)
      this.#untilDone(Promise.all(this.#ending).then(() => ended.session.close()));
  }

  async #sample(): Promise<void> {
    try {
      const counts = countsOf(await this.#options.counts());
      this.#history.push(JSON.stringify({ atMs: Date.now(), counts }));
      if (this.#history.length > historySamplesMax) this.#history.shift();
    } catch {}
  }

  #join(viewer: Viewer, filter: LiveFilter, { session }: Running): void {
    const key = keyOf(filter);
    const channel = this.#channels.get(key) ?? this.#open(filter, session);
    this.#channels.set(key, channel);
    // The other viewers get the pending events now. The new viewer gets them as recent events.
    pushTo(channel);
    channel.viewers.add(viewer);
    viewer.push({ events: channel.feed.recent(), skipped: 0 });
    void this.#sendProjects(viewer, filter.project, session);
  }

  #open(filter: LiveFilter, session: StoreSession): Channel {
    const { project, event, distinctId } = filter;
    // If the filter has an event or a distinct id, few of the newest messages match.
    const isRare = event !== undefined || distinctId !== undefined;
    const feed = new Feed(filter, this.#options.monotonicMs);
    const stop = new AbortController();
    const ended = session.connection.then(async (connection) => {
      if (connection === undefined || stop.signal.aborted) return;
      await tail({
        connection,
        sources: this.#options.sourcesOf(project),
        onFrame: (message, wasThere) => feed.take(message, wasThere),
        onSkipped: (messages) => feed.skip(messages),
        ...(isRare ? { messagesBefore: filteredMessagesBefore } : {}),
        signal: stop.signal,
      });
    });
    return { project, feed, viewers: new Set(), stop, ended };
  }

  #leave(viewer: Viewer, key: string): void {
    const channel = this.#channels.get(key);
    channel?.viewers.delete(viewer);
    if (channel === undefined || channel.viewers.size > 0) return;
    this.#channels.delete(key);
    channel.stop.abort();
    this.#untilDone(channel.ended);
  }

  /** An unknown project is accepted, because it may be created later. */
  async #sendProjects(
    viewer: Viewer,
    project: string | undefined,
    { connection }: StoreSession,
  ): Promise<void> {
    try {
      const open = await connection;
      if (open === undefined) return;
      const ids = await this.#options.projectIds(open, project);
      if (!this.#viewers.has(viewer)) return;
      viewer.send("projects", JSON.stringify(ids.slice(0, projectsSentMax)));
      if (project !== undefined && !ids.includes(project))
        viewer.send("unknown", JSON.stringify({ project }));
    } catch {}
  }

  #push(): void {
    for (const channel of this.#channels.values()) pushTo(channel);
  }

  #untilDone(work: Promise<void>): void {
    const done = work.finally(() => this.#ending.delete(done));
    this.#ending.add(done);
  }
}

function keyOf({ project, event, distinctId }: LiveFilter): string {
  return JSON.stringify([project, event, distinctId]);
}

function pushTo({ feed, viewers }: Channel): void {
  const batch = feed.flush();
  for (const viewer of viewers) viewer.push(batch);
}
