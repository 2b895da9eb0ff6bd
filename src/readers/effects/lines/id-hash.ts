// The 64-bit hash of a distinct id. Databases store values derived from it, so it must never
// change. The addon computes the same hash for ASCII ids (text_hash.h). Clients can choose ids that
// collide.

export class IdHash {
  /** The high half, as a signed word. */
  high = 0;
  low = 0;

  set(id: string): void {
    // Two multiplications per character and a finaliser, so that similar ids have unrelated hashes.
    let high = 0x9e3779b9;
    let low = 0x41c6ce57;
    for (let at = 0; at < id.length; at++) {
      const letter = id.charCodeAt(at);
      high = Math.imul(high ^ letter, 0x85ebca77);
      low = Math.imul(low ^ letter, 0xc2b2ae3d);
    }
    this.high = mixed(high ^ (low >>> 16) ^ id.length);
    this.low = mixed(low ^ this.high);
  }
}

/** The finaliser of MurmurHash3. */
function mixed(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
