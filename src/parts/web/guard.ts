/** Refuses requests that do not come from a page of ours: other hosts, other pages, other methods. Pure. */
import type { IncomingHttpHeaders } from "node:http";

export const SESSION_PATH = "/api/session";
export const PAGE_PATH = "/api/page";
export const STREAM_PATH = "/api/stream";
export const ACT_PATH = "/api/act";
export const PICTURE_PATH = "/api/picture";
export const METRICS_PATH = "/metrics";
export const KEY_HEADER = "x-mailchute-key";
/** Paths that change something. They need POST, which no link and no picture of another page can send. */
const POSTS: ReadonlySet<string> = new Set([SESSION_PATH, ACT_PATH]);

export interface Refusal {
  status: number;
  text: string;
}

export interface Asked {
  method: string;
  /** The path without its query. */
  path: string;
  headers: IncomingHttpHeaders;
}

/** The origin of ours that a request names. */
function originOf(headers: IncomingHttpHeaders, origins: readonly string[]): string | undefined {
  // A foreign name that points to this machine comes with its own Host. The whole name is compared, because 127.evil.example is not
  // ours.
  return origins.find((one) => one.slice(one.indexOf("//") + 2) === headers.host);
}

/** The same for a signed link, whose page is opened from a message, and sends a form. */
export function refuseLink(
  { method, headers }: Omit<Asked, "path">,
  origins: readonly string[],
): Refusal | undefined {
  const own = originOf(headers, origins);
  if (own === undefined) return { status: 421, text: "this host is not served here" };
  if (!["GET", "HEAD", "POST"].includes(method))
    return { status: 405, text: "this method is not served here" };
  if (method !== "POST") return undefined;
  if (headers.origin !== own) return { status: 403, text: "the request comes from another page" };
  return headers["content-type"] === "application/x-www-form-urlencoded"
    ? undefined
    : { status: 415, text: "send a form" };
}

/** Undefined when the request may go on. @param origins the origins of our pages, such as `http://127.0.0.1:7433` */
export function refuse(
  { method, path, headers }: Asked,
  origins: readonly string[],
): Refusal | undefined {
  const own = originOf(headers, origins);
  if (own === undefined) return { status: 421, text: "this host is not served here" };
  const isData = path.startsWith("/api/") || path === METRICS_PATH;
  const isPost = method === "POST";
  if (isPost !== POSTS.has(path) || !["GET", "HEAD", "POST"].includes(method))
    return { status: 405, text: "this method is not served here" };
  const { origin } = headers;
  // Browsers send an Origin with every POST.
  const isOurs = origin === undefined ? !isPost : origin === own;
  if (!isOurs) return { status: 403, text: "the request comes from another page" };
  const site = headers["sec-fetch-site"];
  if (isData && site !== undefined && site !== "same-origin")
    return { status: 403, text: "the request comes from another page" };
  if (isPost && headers["content-type"] !== "application/json")
    return { status: 415, text: "send application/json" };
  return undefined;
}

/** At most so many cookies of one name are looked at. */
const COOKIES_MAX = 8;

/** The values of a cookie. Browsers send another cookie of the same name, too, such as one with another path. */
export function cookiesIn({ cookie = "" }: IncomingHttpHeaders, name: string): string[] {
  return cookie
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .slice(0, COOKIES_MAX)
    .map((part) => part.slice(name.length + 1));
}
