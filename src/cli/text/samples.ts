/** The files that `init` writes. People read them first, so they hold only useful lines. */

export const SAMPLE_ROADMAP = `# yaml-language-server: $schema=schemas/roadmap.json
# The plan: epics hold milestones, milestones hold tasks. Edit it at any time, also while the supervisor runs:
# it changes statuses only, and keeps your comments and your layout.
# status: pending | in_progress | blocked | needs_human | done | failed
epics:
  - id: first-steps
    title: "First steps"
    milestones:
      - id: see-it-work
        title: "See it work"
        tasks:
          - { id: TEST-SUPERVISOR-INTEGRATION-001, title: "Say hello", status: pending, acceptance: ["a greeting was printed"] }
          - { id: TEST-SUPERVISOR-INTEGRATION-002, title: "Say goodbye", status: pending, dependencies: [TEST-SUPERVISOR-INTEGRATION-001], exec: [echo, "goodbye"] }
`;

export const SAMPLE_CONFIG = `# yaml-language-server: $schema=schemas/config.json
# Settings of this state tree. All are optional; what is commented out shows the built-in value.
# Flags win over the environment (MAILCHUTE_WORKERS, MAILCHUTE_RETRY_MAX_ATTEMPTS, ...), which wins over this file.
# \`mailchute config\` shows what is in force and why; \`mailchute schema config\` is the whole list.

# workers: 3                  # slots over all worker processes
# processes: 1
# durability: power           # power: survives a power cut; process: faster, survives any kill

# retention:
#   outbox_days: 7            # results are kept this long
#   failed_days: 30
#   journal_days: 30          # journals that were rotated
#   journal_bytes_max: 4294967296
#   evidence_days: 90         # of nodes that left the plan

# retry:
#   max_attempts: 3           # N means N runs
#   backoff_ms: 1000          # doubles each time, with jitter
#   backoff_max_ms: 300000

# timeout_ms: 0               # longest run of a task that sets none; 0 = no limit
# grace_ms: 5000              # from SIGTERM to SIGKILL
# env_allow: []               # variables that programs get beside PATH, HOME and the like
# roots: [/]                  # directories under which cwd and worktree must lie
# worktrees_dir: worktrees    # where tasks with \`worktree: auto\` get a git worktree of their own
# worktree_ignored_may_go: [node_modules/, dist/]    # ignored files that keep no worktree

# groups:                     # of tasks with \`group: gpu\` at most two are in work at once
#   gpu: {slots: 2}

# \`agents\` run what brings no program of its own: nodes of the roadmap in phases (STRATEGIZE to MONITOR, or what
# \`phases\` says), tasks of the mailbox in one call.
agents:
  - name: hello
    kind: module              # exec | module | claude | codex
    module: ./agents/hello.mjs   # relative to this file
    types: [implementer]      # researcher | implementer | reviewer | planner | verifier | integrator
#     slots: 2                # so many of its tasks are in work at once; default: no limit
#     default: true           # also for tasks that do not say who runs them
#   - name: coder
#     kind: exec
#     program: my-agent       # gets its packet as the file that $MAILCHUTE_PACKET names
#     types: [implementer, planner]
#     capabilities: [typescript]
#     phases: [IMPLEMENT]     # the program is run once
#     worktree: auto          # its tasks work in git worktrees of their own
#     land: merge             # none | branch | merge | exec: then their work is brought into mailchute/integration
`;

/** The config of a tree without a sample: nothing in it is in force. */
export const EMPTY_CONFIG = SAMPLE_CONFIG.replace(/^(?=[^#\n])/gm, "# ");

export const SAMPLE_AGENT = `/** A sample agent: a function that gets the task, and in ctx the phase of the work. What it returns is its result. */
export default async function hello(task, ctx) {
  const phase = ctx.phase ?? "RUN";
  ctx.log(\`\${phase}: \${task.title}\`);
  const summary = phase === "IMPLEMENT" ? "hello from the roadmap" : \`\${phase} of \${task.id}: nothing to add\`;
  return { status: "success", summary };
}
`;
