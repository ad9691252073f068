/** Finds a NATS server and the packages that speak to it. They do not come with `npm ci`: `npm run test:nats` installs the packages. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGES } from "../../../../src/parts/cluster/nats/packages.ts";
import { unpackDebianPackage } from "../../../support/debian-package.ts";
import { installPackages } from "../../../support/install-packages.ts";

/** The folder around `node_modules` with the packages. */
export const CACHE =
  process.env["MAILCHUTE_NATS_CACHE"] ??
  fileURLToPath(new URL("../../../../node_modules/.cache/mailchute-nats", import.meta.url));

/** The path of Debian's server; undefined where there is none. */
export function findServer(): string | undefined {
  if (fs.existsSync("/usr/sbin/nats-server")) return "/usr/sbin/nats-server";
  const unpacked = unpackDebianPackage("nats-server");
  const path = unpacked === undefined ? "" : join(unpacked, "usr/sbin/nats-server");
  return fs.existsSync(path) ? path : undefined;
}

/** Vitest runs it once, before `npm run test:nats`. */
export default function install(): void {
  if (findServer() === undefined)
    throw new Error("there is no NATS server: apt-get install nats-server");
  installPackages(CACHE, PACKAGES);
}
