// What a rebuild answers when it is not possible, or cannot go on: in words for people, with what
// to do. The database that was there is as it was.

export class RebuildError extends Error {
  override name = "RebuildError";
}
