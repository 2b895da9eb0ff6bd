// Turns an error of the file system into a text for people. Any other error is returned unchanged,
// so that no bug is hidden.

/** Explains an error of the file system; returns any other error unchanged. */
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
  ENOENT: "the folder, or a file in it, does not exist",
  ENOTDIR: "it is not a folder",
  EIO: "the disk cannot be read or written",
} as const;
