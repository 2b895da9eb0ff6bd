// The compared methods of publishing. Contains only the list, because the worker reads it too.

export interface PublishWay {
  readonly name: string;
  readonly by: "frames" | "js.publish" | "raw";
  readonly waiting: number;
}

export const publishWays: readonly PublishWay[] = [
  { name: "frames, 128 events waiting", by: "frames", waiting: 128 },
  { name: "frames, 10,000 events waiting", by: "frames", waiting: 10_000 },
  { name: "js.publish, 128 events waiting", by: "js.publish", waiting: 128 },
  { name: "js.publish, 10,000 events waiting", by: "js.publish", waiting: 10_000 },
  { name: "raw bytes, nothing acknowledged", by: "raw", waiting: 0 },
];
