// Limits the bytes of all frames that were read and not yet released. Streams share the budget: a
// stream that holds much leaves room for the others, and each may always have one frame, so that no
// stream waits for another.

export interface Share {
  /** Number of bytes that the stream may request now; 0: none. */
  room(): number;
  /** Number of average messages that fit into that many bytes; at least one. */
  messagesIn(bytes: number): number;
  /** A frame has arrived. */
  add(bytes: number): void;
  /** A frame was processed or dropped. */
  release(bytes: number): void;
  /** The stream is no longer read. Its frames must still be released. */
  leave(): void;
}

interface Member extends Share {
  bytes: number;
  readonly ask: () => void;
}

/**
 * The assumed size of a frame before any was received: the size to which the gateway fills frames.
 */
const frameBytesLikely = 524_288;

export class BytesInHand {
  readonly max: number;
  readonly #members = new Set<Member>();
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** `ask` is called whenever there is room again. */
  join(ask: () => void): Share {
    let frameBytes = frameBytesLikely;
    const member: Member = {
      bytes: 0,
      ask,
      room: () => {
        const own = this.max / 2 - member.bytes;
        const room = Math.floor(Math.min(own, (this.max - this.#used) / this.#members.size));
        return room > 0 ? room : Number(member.bytes === 0);
      },
      messagesIn: (bytes) => Math.max(1, Math.floor(bytes / frameBytes)),
      add: (bytes) => {
        frameBytes += (bytes - frameBytes) / 16;
        member.bytes += bytes;
        this.#used += bytes;
      },
      release: (bytes) => {
        member.bytes -= bytes;
        this.#used -= bytes;
        for (const other of this.#members) other.ask();
      },
      leave: () => void this.#members.delete(member),
    };
    this.#members.add(member);
    return member;
  }
}
