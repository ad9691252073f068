/**
 * How the tests run: against the TypeScript sources, four files at a time, because many wait for processes, longest
 * first, and with counts as the last line of output. `npm test` runs all but the searches; CI runs those, too.
 */
import "./scripts/own-folders.mjs";
import { configDefaults, defineConfig } from "vitest/config";
import LongestFirst from "./test/support/longest-first.ts";

const SIMULATION = "test/simulation/*.test.ts";
/**
 * Samples of the long searches and of edges that take long to try, and what builds or loads the machine: `npm run test:searches`. With
 * `npm run test:walks` each of them is whole.
 */
const SEARCHES = [
  "test/agents/budget/budget-runs.test.ts",
  "test/cli/{enqueue-each,other-tools,state-dir}.test.ts",
  "test/codec/yaml-parts.test.ts",
  "test/agents/runs/{accounts,acp,attach,breaker,drop,fallback,landing,meter,odd-streams,quota,red-check,resume,worktree}.test.ts",
  "test/agents/talk/{continue,say}.test.ts",
  "test/docs/*.test.ts",
  "test/crash/{burst,chaos,every-step,hanging,kill,list,load,poison,supervisor-faults,worker-faults}.test.ts",
  "test/crash/{copied-tree,fencing,few-processes,full-disk,orphans,rights,short-of-room}.test.ts",
  "test/git/{look-speed,named-programs}.test.ts",
  "test/host/portable.test.ts",
  "test/inputs/{duplicates,every-place,live-places,owners,state-files}.test.ts",
  "test/install/*.test.ts",
  "test/interop/{foreign-worker,moved-folders}.test.ts",
  "test/contrib/*.test.ts",
  "test/library/{docs,open,pool}.test.ts",
  "test/removal.test.ts",
  "test/resources/*.test.ts",
  "test/parts/cluster/killed.test.ts",
  "test/parts/mail/{exits,interrupt,killed,loops,say-wait,scale,speed,scopes-at-once,seed,seed-run,spawn,spawn-killed,told,wake,watch}.test.ts",
  "test/parts/mail/{killed-delivery,killed-worker,many-roots,older-killed,three-agents}.test.ts",
  "test/parts/mcp/in-run.test.ts",
  "test/parts/notify/each-topic.test.ts",
  "test/parts/metrics/prometheus.test.ts",
  "test/parts/plan/{old-copy-after-kill,paused-launch,plan-run,rubbish,storm}.test.ts",
  "test/parts/{accounts,demo,demo-agents,demo-night,groups,limits,owns}.test.ts",
  "test/parts/schedules/{in-config,killed-firing,one-pass,plain-reader,pool,scheduler}.test.ts",
  "test/parts/memory/put-back.test.ts",
  "test/parts/run-limits/over-limit.test.ts",
  "test/parts/plugins/plugins.test.ts",
  "test/parts/sandbox/*.test.ts",
  "test/parts/service/real-systemd.test.ts",
  "test/parts/doctor/{agents,night}.test.ts",
  "test/parts/landing/{batch,blame,builds-on,cheats,finishing,full-disk,histories,killed-git,kills,land,lost,overtaken,plan,proof,retention,review,review-by,ten}.test.ts",
  "test/parts/worktrees/{any-git,clean,continued,filters,killed-save,kills,red-base,replaced,setup-cache,unseen}.test.ts",
  "test/parts/top/terminal.test.ts",
  "test/parts/web/{acts,hostile,links,listen-on,read-only-disk,review}.test.ts",
  "test/soak/*.test.ts",
  "test/supervisor/control/{command-flood,killed-commands,races}.test.ts",
  "test/supervisor/queue/skipper.test.ts",
  "test/support/left-over.test.ts",
  "test/worker/replaced-program.test.ts",
];
/** A kill at each call of git, some minutes for each walk: `npm run test:git-kills`. The searches take samples of them. */
const GIT_KILLS = "test/parts/*/every-kill.test.ts";
/** The real coding agents against the mock API, installed first: `npm run test:agents`. */
const AGENTS = "test/agents/real/*.test.ts";
/** All pages in a real browser, with what drives it installed first: `npm run test:web`. */
const WEB = "test/parts/web/browser/*.test.ts";
/** The cluster with real NATS servers, with the packages that speak to them installed first: `npm run test:nats`. */
const NATS = "test/parts/cluster/nats/*.test.ts";
/** The MCP server with the client of the protocol's own kit, installed first: `npm run test:mcp`. */
const MCP = "test/parts/mcp/sdk/*.test.ts";
/** A container without an engine, as root: `npm run test:container`. */
const CONTAINER = "test/container/*.test.ts";

/** 200 expressions beside the real cron of Debian, which is downloaded first: `npm run test:cron`. */
const DEBIAN_CRON = "test/parts/schedules/debian-cron.test.ts";

const IS_WHOLE = process.env["MAILCHUTE_WALKS"] === "all";

// Chooses what the samples of walks take: all processes have the same one.
process.env["MAILCHUTE_WALKS_SEED"] ??= String(Date.now() % 1_000_000);

export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // For what hangs: tests wait with limits of their own, which grow with the load. Searches take long, and some machines an eighth of the speed.
    testTimeout: IS_WHOLE ? 1_800_000 : 300_000,
    hookTimeout: 300_000,
    globalSetup: "test/support/persons-folders.ts",
    reporters: ["default", "./test/support/counts-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "mailchute",
          include: ["test/**/*.test.ts"],
          exclude: [
            ...configDefaults.exclude,
            SIMULATION,
            AGENTS,
            WEB,
            CONTAINER,
            NATS,
            MCP,
            GIT_KILLS,
            DEBIAN_CRON,
            ...SEARCHES,
          ],
          // What tests share is on disk, each in its own directory: a process for each file would only load all of it again.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "searches",
          include: SEARCHES,
          isolate: false,
          testTimeout: IS_WHOLE ? 1_800_000 : 900_000,
        },
      },
      { extends: true, test: { name: "container", include: [CONTAINER] } },
      { extends: true, test: { name: "debian-cron", include: [DEBIAN_CRON] } },
      { extends: true, test: { name: "git-kills", include: [GIT_KILLS], isolate: false } },
      {
        extends: true,
        test: {
          name: "agents",
          include: [AGENTS],
          globalSetup: "test/agents/real/install.ts",
          isolate: false,
          maxConcurrency: 3,
        },
      },
      {
        extends: true,
        test: {
          name: "web",
          include: [WEB],
          globalSetup: "test/parts/web/browser/install.ts",
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "nats",
          include: [NATS],
          globalSetup: "test/parts/cluster/nats/found.ts",
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "mcp",
          include: [MCP],
          globalSetup: "test/parts/mcp/sdk/install.ts",
          isolate: false,
        },
      },
      // It puts another module in the place of one of ours, which it must not share with anybody.
      { extends: true, test: { name: "simulation", include: [SIMULATION], isolate: true } },
    ],
  },
});
