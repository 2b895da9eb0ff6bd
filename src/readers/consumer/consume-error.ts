// Ends the iteration. Retrying does not help: the program needs other options or another version.

export class ConsumeError extends Error {
  override name = "ConsumeError";
}
