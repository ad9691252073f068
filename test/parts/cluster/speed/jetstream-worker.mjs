/** A process that does what a machine must do at the least: takes jobs, publishes a result for each, and acknowledges the job. */
import { createRequire } from "node:module";

const { url, cache, slots, result } = JSON.parse(process.argv[2]);
const load = createRequire(cache);
const { connect } = load("@nats-io/transport-node");
const { jetstream } = load("@nats-io/jetstream");
const nc = await connect({ servers: [url] });
const js = jetstream(nc);
const consumer = await js.consumers.get("bare_work", "work");
const bytes = Buffer.alloc(result, "x");
const messages = await consumer.consume({
  max_messages: slots,
  async callback(message) {
    const startMs = Number(process.hrtime.bigint() / 1000n) / 1000;
    const id = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    await js.publish(`bare.result.${id}`, bytes);
    message.ack();
    process.send({ id, startMs });
  },
});
process.once("disconnect", () => process.exit());
process.send("ready");
await messages.closed();
