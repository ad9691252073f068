/** Where the server listens, and the origins of its pages. Traffic that leaves this machine needs TLS. */
import { ErrUsage } from "../../cli/shell/command-spec.ts";
import { messageOf } from "../../core/errors.ts";
import { NAMED, readRegular } from "../../host/regular-file.ts";

export interface ListenOptions {
  host?: string | undefined;
  origin?: string | undefined;
  "tls-cert"?: string | undefined;
  "tls-key"?: string | undefined;
  "behind-proxy": boolean;
}

export interface ListenOn {
  host: string;
  /** The pair for our own TLS; left out when a proxy has TLS, or when nothing leaves this machine. */
  tls?: { cert: Buffer; key: Buffer };
  /** The origins that browsers may name. Links use the first one. @param port the port on which we listen */
  origins: (port: number) => string[];
}

const LOOPBACK: Readonly<Record<string, (port: number) => string[]>> = {
  "127.0.0.1": (port) => [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
  "::1": (port) => [`http://[::1]:${port}`, `http://localhost:${port}`],
};

/** @throws ErrUsage when other machines could read or change the traffic, and when options contradict each other */
export function listenOn(options: ListenOptions): ListenOn {
  const { host: named = "127.0.0.1", origin, "behind-proxy": isBehind } = options;
  const host = named === "localhost" ? "127.0.0.1" : named;
  const tls = tlsOf(options);
  if (tls === undefined && !isBehind) {
    const origins = Object.hasOwn(LOOPBACK, host) ? LOOPBACK[host] : undefined;
    if (origins === undefined)
      throw new ErrUsage(
        `--host ${host} would send all in the clear: it needs TLS`,
        "give --tls-cert and --tls-key, or --behind-proxy when a proxy in front of it has TLS; both need --origin https://NAME",
      );
    if (origin !== undefined)
      throw new ErrUsage(
        "--origin goes with --tls-cert and --tls-key, or with --behind-proxy",
        "without them it is http://127.0.0.1 and the port",
      );
    return { host, origins };
  }
  if (tls !== undefined && isBehind)
    throw new ErrUsage("--behind-proxy and --tls-cert exclude each other", "leave one of them out");
  const checked = checkOrigin(origin);
  return { host, origins: () => [checked], ...(tls === undefined ? {} : { tls }) };
}

/** The origin as browsers write it: the name in lower case, and no standard port. */
function checkOrigin(origin: string | undefined): string {
  const example = "for example --origin https://pool.example:7433";
  if (origin === undefined)
    throw new ErrUsage("--origin is missing: the address that people open", example);
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  const isPlain = url !== undefined && [url.origin, `${url.origin}/`].includes(url.href);
  if (url?.protocol === "https:" && isPlain) return url.origin;
  throw new ErrUsage(
    `--origin wants https://NAME[:PORT], found ${JSON.stringify(origin)}`,
    example,
  );
}

function tlsOf(options: ListenOptions): ListenOn["tls"] {
  const { "tls-cert": cert, "tls-key": key } = options;
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new ErrUsage("--tls-cert and --tls-key go together", "name both files, as PEM");
  return { cert: read("--tls-cert", cert), key: read("--tls-key", key) };
}

function read(option: string, path: string): Buffer {
  try {
    return readRegular(path, NAMED);
  } catch (error) {
    throw new ErrUsage(`${option} cannot be read: ${messageOf(error)}`, "name a file in PEM form");
  }
}
