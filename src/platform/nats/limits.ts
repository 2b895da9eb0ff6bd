/**
 * Maximum size of the headers of a message: fixed headers, and a message id of up to 256
 * characters. They count towards the server's max_payload.
 */
export const headerBytesMax = 512;
export const messageIdLengthMax = 256;
