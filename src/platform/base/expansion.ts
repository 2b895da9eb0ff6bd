// The bytes that a project may store beyond a multiple of the bytes that it sent, because repeated
// events compress more than a thousandfold.

export const expansionBytesAMinute = 67_108_864;

export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;
