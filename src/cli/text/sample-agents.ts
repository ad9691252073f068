/** The text that `init --agents` writes into config.yaml for installed coding agents. */
import type { CODING_AGENTS } from "../../core/settings.ts";

export interface FoundAgent {
  kind: (typeof CODING_AGENTS)[number];
  /** The path of its program. */
  path: string;
  /** Whether this machine can put it behind walls. */
  hasWalls: boolean;
}

const PERMISSIONS: Readonly<Record<FoundAgent["kind"], string>> = {
  claude: `\
    permissions: {mode: edit} # read | edit | full
`,
  codex: `\
    # Its sandbox can write to the cwd of its task and to /tmp, so neither may hold this state tree: give its tasks a cwd
    # beside it, as in \`enqueue --agent codex --cwd ~/project --prompt …\`.
    permissions: {mode: edit} # read | edit | full (no sandbox)
    # mode: app-server        # takes messages (\`mailchute say\`) while it runs
`,
};

const WALLS = `\
    sandbox: {}               # writes only into its worktree, and reads no keys of yours; open: no walls
`;
const NO_WALLS = `\
    # It has no sandbox: what it runs can reach all that you can. Where bubblewrap is installed, sandbox: {} gives it one.
`;
const PRICES = `
# prices:                     # US dollars for a million tokens, for programs that give no price, as codex
#   my-model: {input_usd: 1, cached_input_usd: 0.1, output_usd: 10}
`;

/** The config with these agents in its list `agents`, which it may have as a comment. */
export function withAgents(config: string, found: readonly FoundAgent[]): string {
  return config.replace(/^# (?=agents:$)/m, "") + describeAgents(found);
}

/** Members of the list \`agents\`, and what goes after it. The first of them takes tasks that name no agent. */
export function describeAgents(found: readonly FoundAgent[]): string {
  const entries = found.map(
    ({ kind, path, hasWalls }, index) => `
  - name: ${kind}
${`    kind: ${kind}`.padEnd(30)}# starts ${path.replace(/[^\x20-\x7e]/g, "?")}
${index === 0 ? "    default: true             # takes tasks that name no agent\n" : ""}\
    capabilities: [code]
${PERMISSIONS[kind]}${kind === "claude" ? (hasWalls ? WALLS : NO_WALLS) : ""}\
    timeout_ms: 14400000      # longest run: 4 hours
    protect: ["@checks"]      # with a worktree, work that changes existing tests or build settings waits for you
    verify_from: target       # its check runs in a clean place
#     model: my-model         # left out: the program's own choice
#     account: work           # whose quota it uses; left out: default. Several: accounts: [work, home]
`,
  );
  return entries.join("") + PRICES;
}
