// The error that ends the iteration if a retry cannot help. The program needs other options or
// another version of Penstock.

export class ConsumeError extends Error {
  override name = "ConsumeError";
}
