// 64 bits that stand for a distinct id: in estimates of how many there were, and where ids are
// looked for. The same in every process, and as the addon makes it of an id in ASCII (text_hash.h).
// Databases hold what it says, so it may never change. Who chooses ids can make two of them
// collide.

export class IdHash {
  /** Signed words of 32 bits. */
  high = 0;
  low = 0;

  set(id: string): void {
    // Two multiplications a letter, then a finaliser: near ids ("user 1", "user 2") must not have
    // anything in common.
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
