// Gives memory back to the system once the load that needed it is over. What is freed in pieces
// between blocks still in use the C library keeps, some 20 MiB after a few bodies of 20 MB. Asked
// for it, it gives whole pages back, in 1 to 2 ms; where there are none, in 0.1 ms.

const everyMs = 10_000;

interface MemoryAtRestOptions {
  /** Bodies in hand and lines not yet acknowledged. */
  readonly bytesInHand: () => number;
  readonly trim: () => void;
}

/** Gives the function that ends it. */
export function keepMemoryAtRest({ bytesInHand, trim }: MemoryAtRestOptions): () => void {
  const timer = setInterval(() => {
    if (bytesInHand() === 0) trim();
  }, everyMs).unref();
  return () => clearInterval(timer);
}
