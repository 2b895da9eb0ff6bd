// Limits the bytes of all frames in memory. Each stream may use at most half of the bytes. A stream
// may always hold one frame, so that it does not have to wait for another stream.

export interface Share {
  room(): number;
  messagesIn(bytes: number): number;
  add(bytes: number): void;
  release(bytes: number): void;
  /** Ends the share. Frames that are not released yet must still be released. */
  leave(): void;
}

interface Member extends Share {
  bytes: number;
  readonly ask: () => void;
}

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
