import { HookError, toHookError } from './hook-error.ts'
import type { ModuleHost } from './host.ts'
import type { JobResponse } from './protocol.ts'
import { withinLimit } from './time-limit.ts'

/** The background jobs of an instance. Runs of a job do not overlap. */
export class Jobs {
  readonly #host: ModuleHost
  // Ids of the jobs whose runs have not ended, even if they exceeded their timeouts.
  readonly #runningIds = new Set<string>()

  constructor(host: ModuleHost) {
    this.#host = host
  }

  /**
   * Runs a job unless it is already running. Throws `HookError` if there is no such job, the job throws, it exceeds
   * `limitMs`, or the module stops.
   */
  async run(id: string, limitMs: number): Promise<JobResponse> {
    const { definition, context, stopSignal } = this.#host
    const job = Object.hasOwn(definition.jobs ?? {}, id) ? definition.jobs?.[id] : undefined
    if (!job) throw new HookError('not_found', `There is no job ${id}.`)
    if (this.#runningIds.has(id)) return { hasRun: false }
    this.#runningIds.add(id)
    try {
      await withinLimit(`The job ${id}`, limitMs, [stopSignal], (signal) => {
        const run = Promise.resolve(context).then((jobContext) => job.run(jobContext, signal))
        return run.finally(() => this.#runningIds.delete(id))
      })
    } catch (error) {
      context.getLogger('jobs').error('A job failed', { job: id, error })
      throw toHookError(error)
    }
    return { hasRun: true }
  }
}
