import type { Stream } from '../backlog.ts'
import type { Leader } from '../process-group.ts'

/** A script to run on one node. */
export type Task = {
  jobId: string
  nodeName: string
  script: string
  /** Takes text of the script; its UTF-8 is whole at every call. */
  onOutput: (stream: Stream, text: string) => void
  /** Called before the script begins, so that a later start finds what this one left behind. */
  onSpawned: (leader: Leader) => void
}

export type StopMode = 'gently' | 'now'

export type Running = {
  /** The exit code as a shell tells it: 128 + signal after a signal, 126 or 127 when it could not be started. */
  ended: Promise<number>
  /**
   * Gently: SIGTERM to everything the script started, SIGKILL five seconds later. Now: SIGKILL. Answers false when the
   * script has ended already.
   */
  stop: (how: StopMode) => boolean
}

/** Runs scripts on one node. */
export type Executor = {
  start: (task: Task) => Running
  isOnline: () => Promise<boolean>
}

/** The environment of a script: the relay's own without its settings, the enrollment token above all. */
export function scriptEnvironment(task?: Task): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAT_'))
  return {
    ...Object.fromEntries(inherited),
    ...(task && { PLAT_JOB_ID: task.jobId, PLAT_NODE_NAME: task.nodeName }),
  }
}
