import type { Stream } from '../backlog.ts'
import type { Leader } from '../process-group.ts'

/** A script to run on one node, with the receiver of its output. */
export type Task = {
  jobId: string
  nodeName: string
  script: string
  onOutput: (stream: Stream, bytes: Buffer) => void
  /** Called before the script starts, so that a restarted relay can find the processes of the script. */
  onSpawned: (leader: Leader) => void
}

export type StopMode = 'graceful' | 'force'

export type RunningScript = {
  /**
   * The exit code as a shell reports it: 128 plus the number of a signal that ended the script, or 126 or 127 if the
   * script could not be started.
   */
  exitCode: Promise<number>
  /**
   * Stops the process group of the script. `graceful` sends SIGTERM once, and SIGKILL to the processes that are left
   * after five seconds; `force` sends SIGKILL. On an ssh node, `force` closes the connection, which stops the script
   * gracefully.
   * Returns false if the script has ended.
   */
  stop: (mode: StopMode) => boolean
}

/** Runs scripts on one node. */
export type Executor = {
  start: (task: Task) => RunningScript
  isOnline: () => Promise<boolean>
  /** Runs a shell command of the relay itself. Returns its output, or an empty text if it fails. */
  probe: (command: string) => Promise<string>
}

/** The limits of time and output of a probe, as options of `execFile`. */
export const probeLimits = { timeout: 15_000, killSignal: 'SIGKILL', maxBuffer: 65_536 } as const

/** Time that a stopped script has to clean up, in milliseconds. */
export const graceMs = 5000

/** Time that background processes have to end by themselves after the script, in milliseconds. */
export const settleMs = 250

/** Returns the line that is added to the output of a script that left processes behind. */
export function endedProcessesLine(count: number | string): string {
  return `[Background processes ended with the script: ${count}]`
}
