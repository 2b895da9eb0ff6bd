// Computes a 64-bit hash of a distinct id, for look-ups and for estimates of the number of ids. The
// hash is the same in every process, and the addon computes the same hash for an ASCII id
// (text_hash.h). Databases store values derived from the hash, so it must never change. Clients can
// choose ids whose hashes collide.

export class IdHash {
  /** The high half of the hash, as a signed 32-bit word. */
  high = 0;
  low = 0;

  set(id: string): void {
    // Two multiplications per character, followed by a finaliser, so that similar ids ("user 1",
    // "user 2") have unrelated hashes.
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

/** Applies the finaliser of MurmurHash3. */
function mixed(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
