/** How long the adapter waits for servers (ms). */

/** How long one request may take, and how long a connection to a server may take. */
export const REQUEST_MS = 5000;
export const CONNECT_MS = 10_000;
/** The pause before a failed connection or request for messages is tried again. */
export const AGAIN_MS = 250;
