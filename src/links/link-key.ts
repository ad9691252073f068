/** The key with which a tree signs its links: `web/link-key.json`, readable by its owner only. Made when it is needed first. */
import { randomBytes } from "node:crypto";
import { isText, shape } from "../core/shape.ts";
import { Documents } from "../host/document-store.ts";
import { statOf } from "../host/regular-file.ts";

const NAME = "link-key";
const KEY_BYTES = 32;
const KEY = /^[\w-]{43}$/;

/** @throws a system error; EINVAL when others can read the file, or it holds no key */
export function linkKey(stateDir: string): string {
  const documents = new Documents(stateDir, "web", shape({ key: isText }));
  const path = documents.path(NAME);
  if (statOf(path) === undefined)
    documents.create(NAME, { key: randomBytes(KEY_BYTES).toString("base64url") });
  const key = documents.load(NAME)?.key ?? "";
  const isPrivate = ((statOf(path)?.mode ?? 0) & 0o077) === 0;
  if (isPrivate && KEY.test(key)) return key;
  const fault = new Error(`${path} is no key that only its owner can read: remove it`);
  throw Object.assign(fault, { code: "EINVAL" });
}
