import type { InvokeScriptPayload } from '@platform/contract/job'
import type { Outcome } from '@platform/contract/relay'
import type { Stream } from './backlog.ts'
import { mapLimit } from './map-limit.ts'
import type { RunningScript, StopMode } from './executor/executor.ts'
import type { CompletionRecord } from './journal-entry.ts'
import type { RelayNode } from './node.ts'
import type { Leader } from './process-group.ts'

const maxConcurrentNodes = 16
const defaultTimeoutSeconds = 3600

export type StopReason = Extract<Outcome, 'timed_out' | 'cancelled' | 'interrupted'>

export type Work = {
  jobId: string
  payload: InvokeScriptPayload
  nodes: RelayNode[]
  onOutput: (nodeId: string, stream: Stream, bytes: Buffer) => void
  onSpawned: (leader: Leader) => void
}

/** The execution of one script on all its nodes, with a common time limit. */
export class Execution {
  readonly #work: Work
  readonly #runningScripts = new Set<RunningScript>()
  readonly #stoppedScripts = new Set<RunningScript>()
  #stopReason: StopReason | undefined

  constructor(work: Work) {
    this.#work = work
  }

  /** Runs the script on every node. After a stop, the script does not start on the remaining nodes. */
  async run(): Promise<CompletionRecord> {
    const { payload, nodes } = this.#work
    const timeoutSeconds = payload.timeoutSeconds ?? defaultTimeoutSeconds
    const timer = setTimeout(() => this.stop('timed_out', 'graceful'), timeoutSeconds * 1000)
    try {
      return completionOf(await mapLimit(maxConcurrentNodes, nodes, (node) => this.#runOn(node)), this.#stopReason)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Stops the script. The first reason is reported, even if a later call forces the stop. */
  stop(reason: StopReason, mode: StopMode): void {
    this.#stopReason ??= reason
    for (const script of this.#runningScripts) if (script.stop(mode)) this.#stoppedScripts.add(script)
  }

  async #runOn({ id: nodeId, name: nodeName, executor }: RelayNode): Promise<CompletionRecord['nodes'][number]> {
    if (this.#stopReason) return { nodeId, exitCode: null }
    const { jobId, payload, onOutput, onSpawned } = this.#work
    const script = executor.start({
      jobId,
      nodeName,
      script: payload.script,
      onOutput: (stream, bytes) => onOutput(nodeId, stream, bytes),
      onSpawned,
    })
    this.#runningScripts.add(script)
    const exitCode = await script.exitCode
    this.#runningScripts.delete(script)
    return { nodeId, exitCode: this.#stoppedScripts.has(script) ? null : exitCode }
  }
}

/** Returns the completion of a job without results of nodes: its script was not started, or its result is unknown. */
export function notStarted(outcome: Outcome): CompletionRecord {
  return { outcome, exitCode: null, nodes: [] }
}

function completionOf(nodes: CompletionRecord['nodes'], reason: StopReason | undefined): CompletionRecord {
  const codes = nodes.map(({ exitCode }) => exitCode)
  const reportedCodes = codes.filter((code) => code !== null)
  const exitCode = reportedCodes.length === 0 ? null : (reportedCodes.find((code) => code !== 0) ?? 0)
  const wasStopped = reason !== undefined && codes.includes(null)
  return { outcome: wasStopped ? reason : 'exited', exitCode, nodes }
}
