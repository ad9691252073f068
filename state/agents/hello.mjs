/** A sample agent: a function that gets the task, and in ctx the phase of the work. What it returns is its result. */
export default async function hello(task, ctx) {
  const phase = ctx.phase ?? "RUN";
  ctx.log(`${phase}: ${task.title}`);
  const summary = phase === "IMPLEMENT" ? "hello from the roadmap" : `${phase} of ${task.id}: nothing to add`;
  return { status: "success", summary };
}
