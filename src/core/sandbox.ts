/** The walls around the programs of an agent: types and defaults of the setting `sandbox`. Pure. */

/** What the programs may do beyond their own places. Every member is optional. */
export interface SandboxWalls {
  /** More files and folders to which they may write: absolute, or from `~/`. */
  write?: string[];
  /** Files and folders that they must not read, besides `READ_DENIED`. */
  read_deny?: string[];
  /** `none`: no network but their own. Default: `open`. */
  network?: "open" | "none" | { allow: string[] };
  /** What happens where this machine can build no walls. Default: `refuse`. */
  missing?: "refuse" | "open";
}

/** `open`: no walls. */
export type SandboxSettings = "open" | SandboxWalls;

/** Places of logins and keys in a home directory. */
export const READ_DENIED: readonly string[] = [
  "~/.ssh",
  "~/.gnupg",
  "~/.aws",
  "~/.azure",
  "~/.config/gcloud",
  "~/.config/gh",
  "~/.config/git/credentials",
  "~/.git-credentials",
  "~/.kube",
  "~/.docker",
  "~/.netrc",
  "~/.password-store",
  "~/.local/share/keyrings",
  "~/.mozilla",
  "~/.config/google-chrome",
  "~/.config/chromium",
];

/** The walls of an agent: its own setting, else that of the tree. Undefined: none. */
export function wallsOf(
  agent: { sandbox?: SandboxSettings | undefined },
  tree: { sandbox: SandboxSettings },
): SandboxWalls | undefined {
  const setting = agent.sandbox ?? tree.sandbox;
  return setting === "open" ? undefined : setting;
}
