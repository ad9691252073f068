import { describe, expect, it } from "vitest";
import { type Envelope, newEnvelope } from "../../../src/core/envelope.ts";
import type { RoadmapNode } from "../../../src/core/roadmap.ts";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import {
  findNode,
  parseRoadmap,
  type RoadmapDocument,
} from "../../../src/parts/plan/read/document.ts";
import { escalationId, REOPENS_MAX } from "../../../src/parts/plan/rules/escalation.ts";
import {
  type FollowUp,
  followUp,
  type SettledRun,
} from "../../../src/parts/plan/rules/follow-up.ts";

const PLAN = `
nodes:
  - { id: plan-root, type: plan, status: done }
  - { id: plan-child, type: plan, status: done, parent: plan-root }
  - { id: task-a, status: in_progress, parent: plan-child, retry_policy: { max_attempts: 1 } }
  - { id: task-b, status: open, parent: plan-child, dependencies: [task-a] }
`;
const FAILED: SettledRun = { ended: "failed", kind: "exit", error: "it ended with exit code 1" };

/** What follows when `id`, which runs, ends like this; with the plan as it is then. */
function settle(
  doc: RoadmapDocument,
  id: string,
  run: SettledRun,
): { doc: RoadmapDocument; follow: FollowUp } {
  const find = (other: string): RoadmapNode | undefined => findNode(doc, other);
  const explainRefused = (edits: readonly RoadmapEdit[]): string | undefined => {
    try {
      applyEdits(doc, edits);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const follow = followUp(find(id) as RoadmapNode, run, { find, explainRefused });
  return { doc: applyEdits(doc, follow.edits), follow };
}

function launch(doc: RoadmapDocument, id: string): RoadmapDocument {
  return applyEdits(doc, [{ kind: "status", id, status: "in_progress" }]);
}

function ids(doc: RoadmapDocument): string[] {
  return doc.nodes.map((node) => node.id);
}

describe("a node that has failed for good", () => {
  it("has failed also when the escalation that is there cannot be changed, and people are told", () => {
    const shared = `${PLAN}
  - &shared { id: plan-escalate-task-a, type: plan, status: blocked, parent: plan-child }
  - { <<: *shared, id: another }
`;
    const { doc, follow } = settle(parseRoadmap(shared), "task-a", FAILED);
    expect(findNode(doc, "task-a")?.status).toBe("failed");
    expect(follow.escalation).toBeUndefined();
    expect(follow.alerts.map(({ kind }) => kind)).toEqual(["node_failed", "escalation_stopped"]);
    expect(follow.alerts[1]?.message).toContain("would change another");
  });

  it("is escalated to the plan it stands under", () => {
    const { doc, follow } = settle(parseRoadmap(PLAN), "task-a", FAILED);
    expect(findNode(doc, "task-a")?.status).toBe("failed");
    expect(follow.escalation).toEqual({ id: "plan-escalate-task-a", subject: "task-a" });
    expect(findNode(doc, "plan-escalate-task-a")).toMatchObject({
      type: "plan",
      status: "open",
      parent: "plan-child",
      dependencies: [{ id: "task-a", required: "terminal" }],
      inputs: [
        { nodeId: "task-a", key: "err.summary" },
        { nodeId: "task-a", key: "out.last_stdout_path" },
      ],
    });
    expect(parseRoadmap(doc.text).problems).toEqual([]);
  });

  it("promotes its plan one level up when the escalation fails too, and never nests escalations", () => {
    let doc = settle(parseRoadmap(PLAN), "task-a", FAILED).doc;
    doc = settle(launch(doc, "plan-escalate-task-a"), "plan-escalate-task-a", FAILED).doc;
    expect(findNode(doc, "plan-escalate-plan-child")).toMatchObject({
      status: "open",
      parent: "plan-root",
      dependencies: [{ id: "plan-escalate-task-a", required: "terminal" }],
    });
    expect(ids(doc).filter((id) => id.includes("plan-escalate-plan-escalate"))).toEqual([]);
  });

  it("tells an escalation that is there of each further cause, after its run if it is under way", () => {
    const plan = PLAN.replace(
      "status: open, parent: plan-child, dependencies: [task-a]",
      "status: in_progress, parent: plan-child, retry_policy: { max_attempts: 1 }",
    );
    const first = settle(parseRoadmap(plan), "task-a", FAILED).doc;
    const above = settle(launch(first, "plan-escalate-task-a"), "plan-escalate-task-a", FAILED).doc;
    const second = settle(above, "task-b", FAILED).doc;
    const again = (doc: RoadmapDocument): ReturnType<typeof settle> =>
      settle(launch(doc, "plan-escalate-task-b"), "plan-escalate-task-b", FAILED);
    const both = ["plan-escalate-task-a", "plan-escalate-task-b"];

    // Not begun yet: its packet will speak of both.
    const waiting = findNode(again(second).doc, "plan-escalate-plan-child");
    expect(waiting?.dependencies.map(({ id }) => id)).toEqual(both);
    expect(new Set(waiting?.inputs.map(({ nodeId }) => nodeId))).toEqual(new Set(both));

    // Under way: it is opened again for what it was not told of, unless that was dealt with.
    const late = again(launch(second, "plan-escalate-plan-child")).doc;
    const end = (next: Envelope["next"]): RoadmapNode | undefined =>
      findNode(
        settle(late, "plan-escalate-plan-child", {
          ended: "success",
          next,
          shown: ["plan-escalate-task-a"],
        }).doc,
        "plan-escalate-plan-child",
      );
    const nothing = { addNodes: [], setStatus: [] };
    const next = end(nothing);
    expect(next).toMatchObject({ status: "open", reopened: 1 });
    expect(new Set(next?.inputs.map(({ nodeId }) => nodeId))).toEqual(new Set([both[1]]));
    const isOpen = { id: "plan-escalate-task-b", status: "open" as const };
    expect(end({ ...nothing, setStatus: [isOpen] })?.status).toBe("done");

    const ended = applyEdits(second, [
      { kind: "status", id: "plan-escalate-plan-child", status: "done" },
    ]);
    const reopened = findNode(again(ended).doc, "plan-escalate-plan-child");
    expect(reopened).toMatchObject({ status: "open", reopened: 1 });
    expect(new Set(reopened?.inputs.map(({ nodeId }) => nodeId))).toEqual(new Set([both[1]]));
    expect(reopened?.dependencies.map(({ id }) => id)).toEqual(both);
  });

  it("is escalated also when it waited for that escalation itself", () => {
    const doc = parseRoadmap(`nodes:
  - { id: plan-root, type: plan, status: done }
  - { id: plan-child, type: plan, status: done, parent: plan-root }
  - { id: plan-escalate-plan-child, type: plan, status: done, parent: plan-root }
  - { id: step, status: failed, parent: plan-child, dependencies: [plan-escalate-plan-child] }
  - { id: plan-escalate-step, type: plan, status: in_progress, parent: plan-child, dependencies: [{ id: step, required_status: terminal }] }
`);
    const end = settle(doc, "plan-escalate-step", FAILED);
    expect(findNode(end.doc, "plan-escalate-plan-child")).toMatchObject({
      status: "open",
      dependencies: [],
      inputs: [
        { nodeId: "plan-escalate-step", key: "err.summary" },
        { nodeId: "plan-escalate-step", key: "out.last_stdout_path" },
      ],
    });
  });

  it("stops at the root, and says that nobody is left", () => {
    let doc = settle(parseRoadmap(PLAN), "task-a", FAILED).doc;
    doc = settle(launch(doc, "plan-escalate-task-a"), "plan-escalate-task-a", FAILED).doc;
    const end = settle(launch(doc, "plan-escalate-plan-child"), "plan-escalate-plan-child", FAILED);
    expect(ids(end.doc)).toEqual(ids(doc));
    expect(end.follow.alerts.map((alert) => alert.kind)).toContain("escalation_stopped");
    expect(findNode(end.doc, "plan-escalate-plan-child")?.status).toBe("failed");
  });

  it("opens a finished escalation again instead of making a second one, but not for ever", () => {
    let doc = settle(parseRoadmap(PLAN), "task-a", FAILED).doc;
    const finish = (id: string): void => {
      doc = applyEdits(doc, [{ kind: "status", id, status: "done" }]);
    };
    for (let times = 1; times <= REOPENS_MAX; times++) {
      finish("plan-escalate-task-a");
      doc = settle(launch(doc, "task-a"), "task-a", FAILED).doc;
      expect(findNode(doc, "plan-escalate-task-a")).toMatchObject({
        status: "open",
        reopened: times,
      });
    }
    finish("plan-escalate-task-a");
    doc = settle(launch(doc, "task-a"), "task-a", FAILED).doc;
    expect(findNode(doc, "plan-escalate-task-a")?.status).toBe("done");
    expect(findNode(doc, "plan-escalate-plan-child")?.status).toBe("open");
  });

  it("is left alone while an escalation of it is still open", () => {
    const first = settle(parseRoadmap(PLAN), "task-a", FAILED).doc;
    const again = settle(launch(first, "task-a"), "task-a", FAILED);
    expect(ids(again.doc)).toEqual(ids(first));
    expect(again.follow.escalation).toBeUndefined();
  });

  it("is not escalated when a person has cancelled it", () => {
    const before = parseRoadmap(PLAN);
    const { doc } = settle(before, "task-a", { ended: "failed", kind: "cancelled", error: "" });
    expect(findNode(doc, "task-a")?.status).toBe("failed");
    expect(ids(doc)).toEqual(ids(before));
  });

  it("is told once, and not escalated, when it stands under no plan", () => {
    const { doc, follow } = settle(
      parseRoadmap("nodes:\n  - { id: lone, status: in_progress }\n"),
      "lone",
      FAILED,
    );
    expect(ids(doc)).toEqual(["lone"]);
    expect(follow.alerts.map((alert) => alert.kind)).toEqual(["node_failed"]);
  });

  it("gets an escalation with a legal id however long its own is", () => {
    const long = "x".repeat(96);
    expect(escalationId(long)).toHaveLength(96);
    expect(escalationId(long)).not.toBe(escalationId(`${"x".repeat(95)}y`));
  });
});

describe("what a successful run wants next", () => {
  const added = { dependencies: [], inputs: [], acceptance: [], verify: [], capabilities: [] };

  it("adds nodes under the plan that asked for them, and sets the status of others", () => {
    const doc = launch(
      parseRoadmap(
        PLAN.replace("plan-root, type: plan, status: done", "plan-root, type: plan, status: open"),
      ),
      "plan-root",
    );
    const next = {
      addNodes: [{ ...added, id: "task-c", type: "task" as const, title: "Third" }],
      setStatus: [{ id: "task-b", status: "blocked" as const }],
    };
    const end = settle(doc, "plan-root", { ended: "success", next });
    expect(findNode(end.doc, "task-c")).toMatchObject({
      title: "Third",
      status: "open",
      parent: "plan-root",
    });
    expect(findNode(end.doc, "task-b")?.status).toBe("blocked");
    expect(findNode(end.doc, "plan-root")?.status).toBe("done");
  });

  it("adds nodes with the status that it gives them, also by setStatus", () => {
    const next = {
      addNodes: [
        { ...added, id: "n1", type: "task" as const, title: "1", status: "blocked" as const },
        { ...added, id: "n2", type: "task" as const, title: "2" },
      ],
      setStatus: [{ id: "N2", status: "blocked" as const }],
    };
    const { doc } = settle(parseRoadmap(PLAN), "task-a", { ended: "success", next });
    expect([findNode(doc, "n1")?.status, findNode(doc, "n2")?.status]).toEqual([
      "blocked",
      "blocked",
    ]);
    expect(parseRoadmap(doc.text)).toEqual(doc);
  });

  it("leaves nodes that are there already as they are", () => {
    const next = {
      addNodes: [{ ...added, id: "TASK-B", type: "verify" as const, title: "Other" }],
      setStatus: [],
    };
    const before = parseRoadmap(PLAN);
    const end = settle(before, "task-a", { ended: "success", next });
    expect(ids(end.doc)).toEqual(ids(before));
    expect(findNode(end.doc, "task-b")?.type).toBe("task");
  });

  it("is refused as a whole when one part of it is impossible: the node has failed", () => {
    const next = {
      addNodes: [
        { ...added, id: "good", type: "task" as const, title: "Good" },
        {
          ...added,
          id: "bad",
          type: "task" as const,
          title: "Bad",
          dependencies: [{ id: "nowhere", required: "done" as const }],
        },
      ],
      setStatus: [],
    };
    const end = settle(parseRoadmap(PLAN), "task-a", { ended: "success", next });
    expect(findNode(end.doc, "task-a")?.status).toBe("failed");
    expect(findNode(end.doc, "good")).toBeUndefined();
    expect(end.follow.alerts[0]?.message).toContain("nowhere");
  });

  it("cannot say of a node that it runs", () => {
    const next = { addNodes: [], setStatus: [{ id: "task-b", status: "in_progress" as const }] };
    const end = settle(parseRoadmap(PLAN), "task-a", { ended: "success", next });
    expect(findNode(end.doc, "task-b")?.status).toBe("open");
    expect(findNode(end.doc, "task-a")?.status).toBe("failed");
    expect(end.follow.error).toContain("task-b cannot be set to in_progress");
  });

  it("does not touch a node that is running, and says so", () => {
    const doc = launch(parseRoadmap(PLAN), "task-b");
    const next = { addNodes: [], setStatus: [{ id: "task-b", status: "open" as const }] };
    const end = settle(doc, "task-a", { ended: "success", next });
    expect(findNode(end.doc, "task-b")?.status).toBe("in_progress");
    expect(end.follow.alerts.map((alert) => alert.kind)).toEqual(["status_refused"]);
  });

  it("waits for a person when it ends with a question", () => {
    const envelope = newEnvelope("checkpoint", "");
    const run: SettledRun = { ended: "checkpoint", next: envelope.next, question: "which one?" };
    const end = settle(parseRoadmap(PLAN), "task-a", run);
    expect(findNode(end.doc, "task-a")?.status).toBe("needs_human");
    expect(end.follow.alerts[0]).toMatchObject({ kind: "needs_human" });
  });

  it("does not overrule a person who has decided about the node meanwhile", () => {
    const doc = applyEdits(parseRoadmap(PLAN), [
      { kind: "status", id: "task-a", status: "blocked" },
    ]);
    const end = settle(doc, "task-a", FAILED);
    expect(end.follow).toEqual({ edits: [], status: undefined, alerts: [] });
  });
});
