/** The files that `init` writes: they are read by people first, so every line of them earns its place. */

export const SAMPLE_ROADMAP = `# The plan: epics hold milestones, milestones hold tasks. Edit it at any time, also while the supervisor runs:
# it changes statuses only, and keeps your comments and your layout.
# status: pending | in_progress | blocked | needs_human | done | failed
epics:
  - id: EPIC-1
    title: "First steps"
    milestones:
      - id: EPIC-1.M1
        title: "See it work"
        tasks:
          - { id: TEST-SUPERVISOR-INTEGRATION-001, title: "Say hello", status: pending, exec: [echo, "hello from the roadmap"] }
          - { id: TEST-SUPERVISOR-INTEGRATION-002, title: "Say goodbye", status: pending, dependencies: [TEST-SUPERVISOR-INTEGRATION-001], exec: [echo, "goodbye"] }
`;

export const SAMPLE_CONFIG = `# Settings of this state tree. All are optional; what is commented out shows the built-in value.
# Flags win over the environment (MAILCHUTE_WORKERS, MAILCHUTE_RETRY_MAX_ATTEMPTS, ...), which wins over this file.
# \`mailchute config\` shows what is in force and why; \`mailchute schema config\` is the whole list.

# workers: 3                  # slots over all worker processes
# processes: 1
# durability: power           # power: survives a power cut; process: faster, survives any kill

# retention:
#   outbox_days: 7            # results are kept this long
#   failed_days: 30

# retry:
#   max_attempts: 3           # N means N runs
#   backoff_ms: 1000          # doubles each time, with jitter
#   backoff_max_ms: 300000

# timeout_ms: 0               # longest run of a task that sets none; 0 = no limit
# grace_ms: 5000              # from SIGTERM to SIGKILL
# env_allow: []               # variables that programs get beside PATH, HOME and the like
# roots: [/]                  # directories under which cwd and worktree must lie

# agents:
#   - name: coder
#     kind: codex             # exec | module | codex | claude
#     types: [implementer]
#     capabilities: [typescript]
#     default: true
#   - name: resize
#     kind: module
#     module: ./handlers/resize.mjs   # relative to this file
`;
