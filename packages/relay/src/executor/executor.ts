import type { Stream } from '../backlog.ts'
import type { Leader } from '../process-group.ts'

/** A script to run on one node. */
export type Task = {
  jobId: string
  nodeName: string
  script: string
  /** Receives text of the script; no call splits a UTF-8 character. */
  onOutput: (stream: Stream, text: string) => void
  /** Called before the script runs, so a restarted relay can find its processes. */
  onSpawned: (leader: Leader) => void
}

export type StopMode = 'graceful' | 'force'

export type Running = {
  /** The exit code as in a shell: 128 + signal after a signal, 126 or 127 if the script could not be started. */
  ended: Promise<number>
  /**
   * `graceful`: SIGTERM to all processes of the script, and SIGKILL after five seconds; `force`: SIGKILL. Returns false
   * if the script has ended.
   */
  stop: (mode: StopMode) => boolean
}

/** Runs scripts on one node. */
export type Executor = {
  start: (task: Task) => Running
  isOnline: () => Promise<boolean>
}

/** The environment of a script: the relay's own without its settings, such as the enrollment token. */
export function scriptEnvironment(task?: Task): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAT_'))
  return {
    ...Object.fromEntries(inherited),
    ...(task && { PLAT_JOB_ID: task.jobId, PLAT_NODE_NAME: task.nodeName }),
  }
}
