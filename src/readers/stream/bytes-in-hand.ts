// Bounds the bytes of all frames that were read and are not yet done with. Streams share the room:
// one that has much in hand leaves room for the others, and each may have one frame at any time, so
// that none waits for another.

export interface Share {
  /** How many bytes the stream may ask for now; 0: none. */
  room(): number;
  /** How many messages commonly fit into so many bytes; at least one. */
  messagesIn(bytes: number): number;
  /** A frame has come. */
  add(bytes: number): void;
  /** A frame is done with, or dropped. */
  release(bytes: number): void;
  /** The stream is not read on. What it has in hand is still to be released. */
  leave(): void;
}

interface Member extends Share {
  bytes: number;
  readonly ask: () => void;
}

/** What a frame is taken to have before any was seen: as the gateway fills them. */
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
