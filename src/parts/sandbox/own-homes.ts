/**
 * The folders in which programs keep their login and their sessions. A run may write there, but not to what the program obeys in the sessions
 * of a person, such as its hooks.
 */
import { basename, join } from "node:path";
import type { AgentSettings } from "../../core/settings.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { tryStatOf, writeNew } from "../../host/regular-file.ts";

interface OwnHome {
  /** A variable that names another folder in the place of the first one. */
  variable?: string;
  folders: readonly string[];
  /** What the program obeys in the first folder. The name of a folder ends with `/`. */
  obeyed?: readonly string[];
  /** Folders in the first one with scripts that each session makes for itself: a run sees no others. */
  scripts?: readonly string[];
}

/** By the kind of the agent or the name of the program. */
const HOMES: Readonly<Record<string, OwnHome>> = {
  claude: {
    variable: "CLAUDE_CONFIG_DIR",
    folders: ["~/.claude"],
    obeyed:
      "settings.json .claude.json CLAUDE.md agents/ commands/ hooks/ plugins/ rules/ skills/".split(
        " ",
      ),
    scripts: ["shell-snapshots"],
  },
  codex: {
    variable: "CODEX_HOME",
    folders: ["~/.codex"],
    obeyed: "config.toml AGENTS.md prompts/ rules/ skills/".split(" "),
    scripts: ["shell_snapshots"],
  },
  opencode: {
    folders: [".config", ".local/share", ".local/state", ".cache"].map(
      (one) => `~/${one}/opencode`,
    ),
    obeyed: "opencode.json AGENTS.md agent/ command/ plugin/".split(" "),
  },
  qwen: { folders: ["~/.qwen"], obeyed: ["settings.json", "QWEN.md"] },
  gemini: { folders: ["~/.gemini"], obeyed: ["settings.json", "GEMINI.md"] },
  copilot: { folders: ["~/.copilot", "~/.cache/copilot"] },
  cline: { folders: ["~/.cline"] },
};
/** These variables name other folders in the place of those in the home directory. */
const XDG = [
  ["XDG_CONFIG_HOME", "~/.config"],
  ["XDG_DATA_HOME", "~/.local/share"],
  ["XDG_STATE_HOME", "~/.local/state"],
  ["XDG_CACHE_HOME", "~/.cache"],
] as const;
/** How deep below the home directory they lie. */
const DEPTH = 3;

export interface HomePlaces {
  folders: string[];
  /** Can only be read. */
  obeyed: string[];
  scripts: string[];
}

/** Makes what is missing, because a run could make it otherwise. @param program the name or path of the program @param home of the person */
export function ownHome(
  { kind }: Pick<AgentSettings, "kind">,
  program: string,
  env: NodeJS.ProcessEnv,
  home: string,
): HomePlaces {
  const own = HOMES[kind] ?? HOMES[basename(program).replace(/\..*$/, "")];
  if (own === undefined) return { folders: [], obeyed: [], scripts: [] };
  const { variable, folders, obeyed = [], scripts = [] } = own;
  const named = variable === undefined ? undefined : env[variable];
  const all =
    named === undefined || named === "" ? folders.map((one) => at(one, env, home)) : [named];
  const inFirst = (name: string): string => join(all[0] as string, name);
  for (const path of [...all, ...scripts.map(inFirst)]) make(`${path}/`);
  for (const name of obeyed) make(inFirst(name));
  return { folders: all, obeyed: obeyed.map(inFirst), scripts: scripts.map(inFirst) };
}

function at(folder: string, env: NodeJS.ProcessEnv, home: string): string {
  const [name = "", place = "~"] = XDG.find(([, one]) => folder.startsWith(`${one}/`)) ?? [];
  return folder.replace(place, env[name] || place.replace("~", home));
}

function make(path: string): void {
  try {
    if (path.endsWith("/")) makeDirs(path, DEPTH);
    else if (tryStatOf(path) === undefined) writeNew(path, path.endsWith(".json") ? "{}\n" : "");
  } catch {
    // The program says what it lacks.
  }
}
