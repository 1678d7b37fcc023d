import type { Stream } from '../backlog.ts'
import type { Leader } from '../process-group.ts'

/** A script to run on one node, with the receiver of its output. */
export type Task = {
  jobId: string
  nodeName: string
  script: string
  /** Receives output of the script. No call splits a UTF-8 character. */
  onOutput: (stream: Stream, text: string) => void
  /** Called before the script runs, so that a restarted relay can find its processes. */
  onSpawned: (leader: Leader) => void
}

export type StopMode = 'graceful' | 'force'

export type Running = {
  /**
   * The exit code as a shell reports it: 128 + signal after a signal, 126 or 127 if the script could not be started.
   */
  ended: Promise<number>
  /**
   * Stops the script. `graceful` sends SIGTERM to all its processes, and SIGKILL after five seconds; `force` sends
   * SIGKILL. Returns false if the script has ended.
   */
  stop: (mode: StopMode) => boolean
}

/** Runs scripts on one node. */
export type Executor = {
  start: (task: Task) => Running
  isOnline: () => Promise<boolean>
}

/** The environment of a script: that of the relay without `PLAT_` variables, which include the enrollment token. */
export function scriptEnvironment(task?: Task): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAT_'))
  return {
    ...Object.fromEntries(inherited),
    ...(task && { PLAT_JOB_ID: task.jobId, PLAT_NODE_NAME: task.nodeName }),
  }
}
