/**
 * Chooses how this machine is asked about its processes: `proc` reads /proc, `portable` runs programs that macOS has, too. With
 * `portable`, nothing of ours opens a file of /proc.
 */
import { ErrInvalidConfig } from "../core/errors.ts";

export type HostKind = "proc" | "portable";

/** Forces one kind. All processes of a state tree must use the same kind, or they take each other for processes of another host. */
export const HOST_VARIABLE = "MAILCHUTE_HOST";

let ownKind: HostKind | undefined;

/** @throws ErrInvalidConfig */
export function hostKind(): HostKind {
  ownKind ??= chooseHost(process.env[HOST_VARIABLE], process.platform);
  return ownKind;
}

/** @param wanted the value of the variable @throws ErrInvalidConfig */
export function chooseHost(wanted: string | undefined, platform: NodeJS.Platform): HostKind {
  if (wanted === undefined || wanted === "") return platform === "linux" ? "proc" : "portable";
  if (wanted === "proc" || wanted === "portable") return wanted;
  throw new ErrInvalidConfig(`${HOST_VARIABLE} must be proc or portable`, {
    hint: `unset ${HOST_VARIABLE}: the right one is chosen by itself`,
  });
}
