/** The built-in settings are sound, and relations between settings are checked. */
import { describe, expect, it } from "vitest";
import { explainBadSettings } from "../../src/core/bad-settings.ts";
import { WORKERS_MAX } from "../../src/core/limits.ts";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";

const withAgents = (...agents: AgentSettings[]): Settings => ({ ...DEFAULT_SETTINGS, agents });

/** An agent with a meter behind these walls. */
const metered = (sandbox: NonNullable<Settings["sandbox"]>): Settings => ({
  ...withAgents({ name: "a", kind: "exec", program: "p", meter: true }),
  sandbox,
});

describe("settings", () => {
  it("are sound as built in", () => {
    expect(explainBadSettings(DEFAULT_SETTINGS)).toBeUndefined();
  });

  it.each<[string, Settings]>([
    ["lease_ttl_ms", { ...DEFAULT_SETTINGS, heartbeat_ms: 5000, lease_ttl_ms: 9999 }],
    ["stall_ms", { ...DEFAULT_SETTINGS, stall_ms: 60 }],
    [
      "backoff_ms",
      { ...DEFAULT_SETTINGS, retry: { max_attempts: 3, backoff_ms: 2, backoff_max_ms: 1 } },
    ],
    ["workers", { ...DEFAULT_SETTINGS, workers: WORKERS_MAX + 1 }],
    ["twice", withAgents({ name: "a", kind: "exec", program: "p" }, { name: "a", kind: "module" })],
    ["program", withAgents({ name: "a", kind: "exec" })],
    ["module", withAgents({ name: "a", kind: "module" })],
    ["cannot reach", metered({ network: "none" })],
    ["cannot reach", metered({ network: { allow: ["api.example.invalid"] } })],
  ])("that contradict each other are refused, naming %s", (word, settings) => {
    expect(explainBadSettings(settings)).toContain(word);
  });

  it("let a meter stand with walls that leave the network open, and at an agent without walls", () => {
    expect(explainBadSettings(metered({ network: "open" }))).toBeUndefined();
    const [agent] = metered({}).agents;
    const own = withAgents({ ...agent, name: "a", kind: "exec", sandbox: "open" });
    const sandbox = { network: "none" } as const;
    expect(explainBadSettings({ ...own, sandbox })).toBeUndefined();
  });

  it("at their very limits are accepted", () => {
    expect(
      explainBadSettings({
        ...DEFAULT_SETTINGS,
        heartbeat_ms: 5000,
        lease_ttl_ms: 10_000,
        stall_ms: 1000,
        workers: WORKERS_MAX,
      }),
    ).toBeUndefined();
    expect(
      explainBadSettings(
        withAgents(
          { name: "a", kind: "exec", program: "x" },
          { name: "b", kind: "module", module: "m" },
        ),
      ),
    ).toBeUndefined();
  });
});
