/**
 * What the two sides of the protocol need of their state trees and of the broker between them. Types only. A call to the broker may
 * reject even if the broker has carried it out. A rejected call is made again later.
 */
import type { Dispatch } from "./dispatch.ts";
import type { End, Job, Result } from "./messages.ts";

/** A message that the broker keeps, and delivers again until it is done. */
export interface Delivery {
  /** The broker does not deliver it again. */
  done(): Promise<void>;
  /** The broker delivers it again soon. */
  later(): Promise<void>;
}

export interface OriginBroker {
  /** Resolves when the broker keeps the job. A job that it keeps already stays as it is, and is not delivered a second time. */
  publishJob(job: Job): Promise<void>;
  hasJob(target: string, id: string): Promise<boolean>;
  /** Asks all machines to report at once which dispatches of this tree they have. */
  ask(): Promise<void>;
  /** Whether the broker has a result of it for this tree. It may have delivered that result to us already. */
  hasResult(id: string): Promise<boolean>;
  /** Removes this job from the broker. A machine that has it goes on. */
  dropJob(target: string, id: string): Promise<void>;
  /** Tells a machine that its work on a dispatch is over: it is settled, cancelled or no longer wanted. */
  publishOver(machine: string, id: string): Promise<void>;
}

/** `waits`: the task is held for its result. `over`: no result can settle it any more. `unsure`: it may be held again. */
export type HoldState = "waits" | "over" | "unsure";

export interface OriginTree {
  /** @param target the target of the job */
  standing(dispatch: Dispatch, target: string): HoldState;
  /**
   * Ends this run as the mailbox protocol does: the task is settled, or waits for its next run. The first step is a rename of the
   * held name. @returns false when that name was gone, so nothing has changed
   */
  settle(dispatch: Dispatch, result: Result): Promise<boolean>;
  /** Books what a run has cost whose result settles nothing, for example because the task was cancelled. */
  bookCosts(result: Result): void;
}

export interface MachineBroker {
  publishResult(result: Result): Promise<void>;
  /**
   * Removes this job from the broker, so that no other machine gets it.
   * @param lease the lease of its delivery. If the broker has lost its disk since, nothing happens
   */
  finishJob(lease: string): Promise<void>;
  /**
   * Keeps the broker from delivering a job to another machine for `ack_wait`. Makes a round trip to the broker.
   * @param lease the lease of the delivery. If the broker has lost its disk since, success only proves that the broker can be
   * reached
   */
  renew(lease: string): Promise<void>;
}

/**
 * `none`: the task is not here. `unsettled`: it waits or runs here, or a cancel that was asked for has not been carried out yet.
 * That cancel must not hit a later run. `settled`: its record is here.
 */
export type Place = "none" | "unsettled" | "settled";

/**
 * What a machine knows of a dispatch in addition to its mailbox. `taken`: it must tell the result. `left`: it was cut off, and
 * stopped its run because another machine may have the job. `over`: the origin no longer wants the dispatch.
 */
export interface Note {
  dispatch: Dispatch;
  target: string;
  lease: string;
  /**
   * The place of this delivery among all deliveries of the job. The text of a later delivery is greater, also after the servers have
   * lost their disks. Missing in notes of earlier versions.
   */
  turn?: string;
  state: "taken" | "left" | "over";
}

export interface MachineTree {
  note(id: string): Note | undefined;
  /** Replaces the whole note. */
  saveNote(id: string, note: Note): void;
  removeNote(id: string): void;
  placeOf(id: string): Place;
  /** Why this job must not run here; undefined when it may. */
  whyRefused(job: Job): string | undefined;
  /** Submits the task of a job, never a second time. Also resolves when the task is there already. */
  submit(id: string, job: Job): Promise<void>;
  /** The end of a settled task, from its record; undefined when the record is gone. */
  endOf(id: string): End | undefined;
  /** Sends one command that cancels an unsettled task. It takes effect later, or the task ends by itself first. */
  cancel(id: string): Promise<void>;
  /** Puts a cancelled task back to run again. */
  runAgain(id: string): Promise<void>;
}
