/**
 * A gate: tasks of some agents and groups start only at night. With a verb and a page that say when that is.
 *
 *     plugins:
 *       - path: mailchute-night
 *         settings: { from: 22, to: 6, agents: [coder], groups: [nightly] }
 */
import { defineCommand, definePlugin } from "mailchute/plugin";

const isNight = (hour, { from = 22, to = 6 }) =>
  from < to ? hour >= from && hour < to : hour >= from || hour < to;

/** When the next night begins (epoch ms), in the time zone of this machine. */
function nextNight(nowMs, { from = 22 }) {
  const at = new Date(nowMs);
  at.setHours(from, 0, 0, 0);
  if (at.getTime() <= nowMs) at.setDate(at.getDate() + 1);
  return at.getTime();
}

export default definePlugin({
  name: "night",
  version: "1.0.0",
  api: 1,
  settings: {
    type: "object",
    properties: {
      from: { type: "integer", minimum: 0, maximum: 23 },
      to: { type: "integer", minimum: 0, maximum: 23 },
      agents: { type: "array", items: { type: "string" } },
      groups: { type: "array", items: { type: "string" } },
    },
    additionalProperties: false,
  },
  gates: {
    hours({ agent, group }, nowMs, settings) {
      const { agents = [], groups = [] } = settings;
      if (!agents.includes(agent) && !groups.includes(group)) return undefined;
      if (isNight(new Date(nowMs).getHours(), settings)) return undefined;
      const { from = 22, to = 6 } = settings;
      return {
        why: `it starts only at night, from ${from} to ${to} o'clock`,
        do: "wait, or change the hours of the plugin night in config.yaml",
        until_ms: nextNight(nowMs, settings),
      };
    },
  },
  pages: {
    night: {
      title: "Night",
      render({ nowMs }, settings) {
        const { agents = [], groups = [] } = settings;
        const isNow = isNight(new Date(nowMs).getHours(), settings);
        return [
          {
            kind: "facts",
            facts: [
              ["now", isNow ? "night: its tasks start" : "day: its tasks wait"],
              ["the next night", { at_ms: nextNight(nowMs, settings) }],
              ["agents", agents.join(", ")],
              ["groups", groups.join(", ")],
            ],
          },
        ];
      },
    },
  },
  verbs: {
    night: {
      summary: "when the next night begins",
      command: defineCommand({
        usage: "[--from HOUR]",
        options: { from: { type: "number", value: "HOUR", min: 0, max: 23, help: "default: 22" } },
        async run(ctx) {
          const at = new Date(nextNight(Date.now(), { from: ctx.options.from })).toISOString();
          if (ctx.json) ctx.out.json({ next_night: at });
          else ctx.out.line(`the next night begins at ${at}`);
          return 0;
        },
      }),
    },
  },
});
