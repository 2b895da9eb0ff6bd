// The number of bytes that a project may store beyond a multiple of the bytes that it sent, because
// repeated events compress more than a thousandfold. The meter enforces the limit. Errors and
// settings show it.

export const expansionBytesAMinute = 67_108_864;

/** The limit as text. */
export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;
