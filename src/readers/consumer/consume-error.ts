// The error that ends a reading: nothing helps but other options, or another version.

export class ConsumeError extends Error {
  override name = "ConsumeError";
}
