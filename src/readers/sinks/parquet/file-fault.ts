// What is said of files that cannot be read or written. Must not hide what is no fault of a file's:
// that is given back as it is.

/** What went wrong with files, in words for people. Anything else is given back as it is. */
export function fileFault(error: unknown, doing: string): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof Error) || code === undefined || !/^E[A-Z]+$/.test(code))
    return error as Error;
  const what = words[code as keyof typeof words] ?? message;
  return new Error(`${doing}: ${what} (${code})`, { cause: error });
}

const words = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of this user is used up",
  EROFS: "the file system is read-only",
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  ENOENT: "the folder, or a file in it, is gone",
  ENOTDIR: "it is no folder",
  EIO: "the disk does not read or write",
} as const;
