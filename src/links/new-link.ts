/** Makes a signed link to the page of `web.public_url` where a person answers, retries or pauses without a login. */
import { randomBytes } from "node:crypto";
import { treeIdOf } from "../host/tree-id.ts";
import { linkKey } from "./link-key.ts";
import { LINK_MS, signLink } from "./signed-link.ts";

/** The path of such a link; its end is the token. */
export const LINK_PATH = "/do/";

export function newNonce(): string {
  return randomBytes(12).toString("base64url");
}

/** @param url `https://NAME[:PORT]` @param nowMs epoch ms @throws as `linkKey` does */
export function newLink(
  url: string,
  stateDir: string,
  { failed, nowMs }: { failed: string[]; nowMs: number },
): string {
  const until_ms = nowMs + LINK_MS;
  const link = { nonce: newNonce(), tree: treeIdOf(stateDir) ?? "", until_ms, failed };
  return `${url}${LINK_PATH}${signLink(link, linkKey(stateDir))}`;
}
