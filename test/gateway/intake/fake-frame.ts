import type { FrameSink } from "../../../src/records/frame-sink.ts";

export class FakeFrame implements FrameSink {
  readonly buffer: Buffer;
  length = 0;
  events = 0;

  constructor(bytes: number) {
    this.buffer = Buffer.alloc(bytes);
  }

  commit(end: number, events: number): void {
    this.length = end;
    this.events += events;
  }

  rollback(): void {
    this.length = 0;
    this.events = 0;
  }
}
