// The overhead of a message in addition to its lines. Publisher, stream configuration and doctor
// share these numbers.

/**
 * The part of the server's max_payload that headers may use: the fixed ones and a message id of up
 * to 256 characters.
 */
export const headerBytesMax = 512;
export const messageIdLengthMax = 256;
