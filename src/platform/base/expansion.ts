// How many bytes a project may store beyond a multiple of the bytes that it sent: repeated events
// compress more than a thousandfold. The meter enforces the limit; errors and settings show it.

export const expansionBytesAMinute = 67_108_864;

/** The same number as text. */
export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;
