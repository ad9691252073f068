/**
 * A place to try out a program: a mock API, and a home and a working folder only for this. The user's files are not touched.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { AgentKind, AgentSettings } from "../../core/settings.ts";
import { claudeAgainst, codexAgainst } from "../mock-api/against.ts";
import type { Scenario } from "../mock-api/script.ts";
import { type MockApi, type MockRequest, startMockApi } from "../mock-api/server.ts";
import type { AgentProgram } from "../stream/agent-program.ts";
import type { Fact } from "../stream/facts.ts";
import { type Answer, askOnce } from "./ask-once.ts";

/** One thing that a version of the program can or cannot do. */
export interface Ability {
  name: string;
  can: boolean;
  /** What its runs lack when it cannot do this. */
  without: string;
}

/** For a kind of agents with programs that we do not know: asks one who it is, and what it can do. */
export interface Handshake {
  readonly kind: AgentKind;
  shake(
    agent: AgentSettings,
    where: { env: NodeJS.ProcessEnv; cwd: string },
  ): Promise<{ name: string; notes: readonly string[]; abilities: Ability[] } | { fault: string }>;
  /** Has it answer a mock of the services of models. */
  tryOut?(
    agent: AgentSettings,
    where: { env: NodeJS.ProcessEnv },
  ): Promise<Ability[] | { fault: string }>;
}

export interface ProgramProbe {
  readonly kind: AgentKind;
  readonly program: AgentProgram;
  /** The answers of the mock API for `tryAll` and `trySandbox`. */
  readonly scenario: Scenario;
  /** @returns undefined when the program gave no good answer to the simplest question; `bench.fault` says why */
  tryAll(bench: Bench): Promise<Ability[] | undefined>;
  /** For a program with a sandbox. @returns why the sandbox does not work on this machine; undefined when it works */
  readonly trySandbox?: (bench: Bench) => Promise<string | undefined>;
}

/** On a busy machine, one answer of the mock API takes a few seconds. */
const ANSWER_MS_MAX = 30_000;
const KEY = "not-a-key-0001";

export class Bench {
  /** Working folder of the program. */
  readonly dir: string;
  readonly home: string;
  /** The fault of the last answer. */
  fault: string | undefined;
  private readonly root: string;
  private readonly api: MockApi;
  private readonly probe: ProgramProbe;
  private readonly settings: AgentSettings;
  private readonly env: NodeJS.ProcessEnv;
  private readonly limitMs: number;

  private constructor(probe: ProgramProbe, path: string, api: MockApi, limitMs: number) {
    this.root = fs.mkdtempSync(join(os.tmpdir(), "mailchute-probe-"));
    this.dir = join(this.root, "work");
    this.home = join(this.root, "home");
    fs.mkdirSync(this.dir);
    fs.mkdirSync(this.home);
    this.api = api;
    this.probe = probe;
    this.limitMs = limitMs;
    const address = { url: api.url, key: KEY, retries: 0 };
    const { env, args } = probe.kind === "codex" ? codexAgainst(address) : claudeAgainst(address);
    this.settings = { name: "probe", kind: probe.kind, program: path, args: [...args] };
    this.env = { PATH: process.env["PATH"], HOME: this.home, ...env };
  }

  /** Tries a program out. @param limitMs for each answer */
  static async with<T>(
    probe: ProgramProbe,
    path: string,
    use: (bench: Bench) => Promise<T>,
    limitMs = ANSWER_MS_MAX,
  ): Promise<T> {
    const api = await startMockApi(probe.scenario);
    const bench = new Bench(probe, path, api, limitMs);
    try {
      return await use(bench);
    } finally {
      await api.close();
      fs.rmSync(bench.root, { recursive: true, force: true, maxRetries: 5 });
    }
  }

  /** The requests that the mock API got. */
  get requests(): readonly MockRequest[] {
    return this.api.requests;
  }

  /** @param program how the program is run and its output read; only given when this is not the usual way */
  async ask(
    prompt: string,
    sessionId?: string,
    args: readonly string[] = [],
    program = this.probe.program,
  ): Promise<Answer> {
    const settings = { ...this.settings, args: [...(this.settings.args ?? []), ...args] };
    const answer = await askOnce(
      { program, settings, prompt, sessionId },
      { cwd: this.dir, env: this.env, limitMs: this.limitMs },
    );
    this.fault = answer.fault;
    return answer;
  }
}

/** The first fact of a kind. */
export function factOf<K extends Fact["fact"]>(
  { facts }: Answer,
  kind: K,
): Extract<Fact, { fact: K }> | undefined {
  return facts.find((fact): fact is Extract<Fact, { fact: K }> => fact.fact === kind);
}
