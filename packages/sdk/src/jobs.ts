import { HookError, toHookError } from './hook-error.ts'
import { type ModuleHost } from './host.ts'
import { type JobResponse } from './protocol.ts'
import { withinLimit } from './time-limit.ts'

/** The background jobs of an instance. */
export class Jobs {
  readonly #host: ModuleHost
  /** Jobs whose run has not ended, including runs that exceeded their timeout. */
  readonly #running = new Set<string>()

  constructor(host: ModuleHost) {
    this.#host = host
  }

  /**
   * Runs a job unless it is running. Throws `HookError` if there is no such job, it throws, or it exceeds the timeout.
   */
  async run(id: string, limitMs: number): Promise<JobResponse> {
    const { definition, context, stopping } = this.#host
    const job = Object.hasOwn(definition.jobs ?? {}, id) ? definition.jobs?.[id] : undefined
    if (!job) throw new HookError('not_found', `There is no job ${id}.`)
    if (this.#running.has(id)) return { hasRun: false }
    this.#running.add(id)
    try {
      await withinLimit(`The job ${id}`, limitMs, [stopping], (signal) => {
        const run = Promise.resolve(context).then((ready) => job.run(ready, signal))
        return run.finally(() => this.#running.delete(id))
      })
    } catch (error) {
      context.getLogger('jobs').error('A job failed', { job: id, error })
      throw toHookError(error)
    }
    return { hasRun: true }
  }
}
