/** The heartbeat by a timer while a run starts: it ends with the start, however that ends. */
import { expect, it } from "vitest";
import { Startup } from "../../src/supervisor/startup.ts";

type Parameters = ConstructorParameters<typeof Startup>;

it("a start that fails leaves no timer that says that the supervisor runs", async () => {
  const beats = { begun: 0, ended: 0 };
  const env = {
    settings: { mailbox_enabled: false, workers: 1 },
    trays: { clock: { monotonicMs: () => 0 } },
    telemetry: { note: () => {} },
    alerts: { notice: () => {} },
  } as unknown as Parameters[0];
  const parts = {
    status: {
      introduce: async () => "",
      beatByTimer: () => {
        beats.begun++;
        return () => beats.ended++;
      },
    },
    control: { keepDamaged: () => {}, current: { max_workers: null } },
    limits: {
      start: () => {},
      pool: () => ({
        supervisor: "running",
        isMailboxOn: true,
        isRead: true,
        control: { launched: [] },
      }),
    },
    poll: { start: async () => Promise.reject(new Error("EMFILE")) },
  } as unknown as Parameters[2];
  await expect(new Startup(env, {} as Parameters[1], parts).run()).rejects.toThrow("EMFILE");
  expect(beats).toEqual({ begun: 1, ended: 1 });
});
