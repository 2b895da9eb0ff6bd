// Ends the iteration: only other options or another version of Penstock can help.

export class ConsumeError extends Error {
  override name = "ConsumeError";
}
