import { HookError, toHookError } from './hook-error.ts'
import { type ModuleHost } from './host.ts'
import { type JobResponse } from './protocol.ts'
import { withinLimit } from './time-limit.ts'

/** The background jobs of an instance. Runs of a job do not overlap. */
export class Jobs {
  readonly #host: ModuleHost
  // Includes runs that exceeded their timeout but have not ended.
  readonly #running = new Set<string>()

  constructor(host: ModuleHost) {
    this.#host = host
  }

  /**
   * Runs a job unless it is already running. Throws `HookError` if there is no such job, the job throws, or it exceeds
   * the timeout in milliseconds.
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
