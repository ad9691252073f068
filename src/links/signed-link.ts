/**
 * A signed link to a page with a few actions, for a message to a phone. A person who has it may do one of them, once, within an hour. Pure;
 * the text is `<body>.<signature>`, both base64url; the signature is HMAC-SHA-256 with the key of the tree.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface SignedLink {
  /** Random: a link works once. */
  nonce: string;
  /** The tree for which it was made: see `host/tree-id`. A copy of the tree has the same key. */
  tree: string;
  /** Epoch ms. */
  until_ms: number;
  /** Failed tasks that the message named. */
  failed: string[];
}

export const LINK_MS = 60 * 60 * 1000;
/** Of a longer text nothing is read. */
const CHARS_MAX = 4096;

export function signLink(link: SignedLink, key: string): string {
  const body = Buffer.from(JSON.stringify(link)).toString("base64url");
  return `${body}.${signatureOf(body, key)}`;
}

/** @returns why it is no link of this tree that works now, as a text for people */
export function readLink(
  text: string,
  { key, tree, nowMs }: { key: string; tree: string; nowMs: number },
): SignedLink | string {
  const [body = "", signature = "", ...more] = text.length > CHARS_MAX ? [] : text.split(".");
  const wanted = Buffer.from(signatureOf(body, key));
  const found = Buffer.from(signature);
  const isOurs = wanted.length === found.length && timingSafeEqual(wanted, found);
  if (!isOurs || more.length > 0) return "this is no link of this pool";
  const link = JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as SignedLink;
  if (link.tree !== tree) return "this link is for another pool";
  // A clock that was set back must not make it live longer.
  const isLate = nowMs >= link.until_ms || link.until_ms - nowMs > LINK_MS;
  return isLate ? "this link is older than an hour" : link;
}

function signatureOf(body: string, key: string): string {
  return createHmac("sha256", key).update(body).digest("base64url");
}
