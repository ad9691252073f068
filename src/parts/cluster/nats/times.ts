/** How long the adapter waits for servers (ms). */

/** How long one request may take, and how long it may take to connect to a server. */
export const REQUEST_MS = 5000;
export const CONNECT_MS = 10_000;
/** The pause before a connection, or a request for messages, that has failed is tried again. */
export const AGAIN_MS = 250;
