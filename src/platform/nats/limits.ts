// What one message may take beside its lines. Publisher, stream configuration and doctor reckon
// with the same numbers.

/**
 * What the headers may take of the server's max_payload: the fixed ones and a message id of up to
 * 256 characters.
 */
export const headerBytesMax = 512;
export const messageIdLengthMax = 256;
