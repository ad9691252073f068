/** Tasks of one kind with typed payloads and outputs, which the user's schemas check. Their files are like those of any other task. */
import { type Handler, type HandlerContext, NoRetryError } from "../agents/handler.ts";
import { ErrInvalidResult, ErrInvalidTask } from "../core/errors.ts";
import type { Task } from "../core/task.ts";
import { checkBy, type InputOf, type OutputOf, type StandardSchemaV1 } from "./standard-schema.ts";
import type { NewTask } from "./submissions.ts";

/** Defines a kind of task: the agent that runs it, and the schemas of its payload and its output. */
export interface TaskDefinition<
  Payload extends StandardSchemaV1,
  Output extends StandardSchemaV1 = StandardSchemaV1,
> {
  /** The agent that runs it: a handler of `pool`, or an agent of `config.yaml`. */
  agent: string;
  payload: Payload;
  /** Left out: any output. */
  output?: Output;
}

export interface TaskKind<Payload extends StandardSchemaV1, Output extends StandardSchemaV1> {
  readonly agent: string;
  /**
   * A task of this kind, for `enqueue`.
   * @param fields its other members, such as `id` and `priority`
   * @throws ErrInvalidTask when the payload does not match the schema
   */
  task(payload: InputOf<Payload>, fields?: NewTask): Promise<NewTask>;
  /**
   * The handler of such tasks, for `pool` or as the `export default` of a module. A payload or an output that breaks its schema
   * fails the task at once, without another run.
   */
  handler(
    run: (payload: OutputOf<Payload>, context: HandlerContext, task: Task) => Returned<Output>,
  ): Handler;
  /** The output of a result. @throws ErrInvalidResult when it does not match the schema */
  output(result: { id: string; output: unknown }): Promise<OutputOf<Output>>;
}

type Returned<Output extends StandardSchemaV1> = InputOf<Output> | Promise<InputOf<Output>>;

export function defineTask<
  Payload extends StandardSchemaV1,
  Output extends StandardSchemaV1 = StandardSchemaV1,
>(definition: TaskDefinition<Payload, Output>): TaskKind<Payload, Output> {
  const { agent, payload: payloadSchema, output: outputSchema } = definition;
  return {
    agent,
    async task(payload, fields = {}) {
      const checked = await checkBy(payloadSchema, payload);
      if ("fault" in checked)
        throw new ErrInvalidTask(`the payload of a task of ${agent}: ${checked.fault}`, {
          phase: "enqueue",
          ...(fields.id === undefined ? {} : { id: fields.id }),
        });
      // Submit the payload as it was given: a schema may change the value that it checks, and the handler checks it again.
      return { ...fields, agent, payload };
    },
    handler(run) {
      return async (task, context) => {
        const checked = await checkBy(payloadSchema, task.payload);
        if ("fault" in checked) throw new NoRetryError(`its payload: ${checked.fault}`);
        const output = await run(checked.value, context, task);
        if (outputSchema === undefined) return output;
        const given = await checkBy(outputSchema, output);
        if ("fault" in given) throw new NoRetryError(`its output: ${given.fault}`);
        return output;
      };
    },
    async output({ id, output }) {
      if (outputSchema === undefined) return output as OutputOf<Output>;
      const checked = await checkBy(outputSchema, output);
      if ("value" in checked) return checked.value;
      throw new ErrInvalidResult(`the output of ${id}: ${checked.fault}`, { id, phase: "read" });
    },
  };
}
