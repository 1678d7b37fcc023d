import type { Health, HealthCheck } from './definition.ts'
import type { ModuleHost } from './host.ts'
import { messageOf } from './message.ts'
import type { State } from './protocol.ts'
import { withinLimit } from './time-limit.ts'

// This is shorter than the platform's timeout, so that the platform receives an Unhealthy response instead of no
// response.
const checkTimeoutMs = 4000
const statuses = ['Healthy', 'Degraded', 'Unhealthy'] as const

// The response is public, so it contains no descriptions.
interface Aggregate {
  status: Health['status']
  state: State
  checks: { name: string; status: Health['status'] }[]
}

/** The health checks of an instance. Concurrent requests for a check share one run. */
export class HealthChecks {
  readonly #host: ModuleHost
  readonly #runs = new Map<string, Promise<Health>>()

  constructor(host: ModuleHost) {
    this.#host = host
  }

  /** Runs one check. Returns undefined if there is no check with this name. */
  async result(name: string): Promise<Health | undefined> {
    const check = this.#checks[name]
    if (!check || !Object.hasOwn(this.#checks, name)) return undefined
    return this.#runs.get(name) ?? this.#run(name, check)
  }

  /**
   * Runs all checks and returns the worst status. Informational checks do not count, and only critical ones count as
   * Unhealthy. Unless the module is Started, runs no checks and returns Unhealthy.
   */
  async aggregate(): Promise<Aggregate> {
    const { state } = this.#host
    if (state !== 'Started') return { status: 'Unhealthy', state, checks: [] }
    const results = await Promise.all(
      Object.entries(this.#checks).map(async ([name, check]) => {
        const status = (await this.result(name))?.status ?? 'Unhealthy'
        return { name, status, effectiveStatus: effectiveStatusOf(check, status) }
      }),
    )
    const worstIndex = Math.max(0, ...results.map((result) => statuses.indexOf(result.effectiveStatus)))
    return {
      status: statuses[worstIndex] ?? 'Unhealthy',
      state,
      checks: results.map(({ name, status }) => ({ name, status })),
    }
  }

  get #checks(): Readonly<Record<string, HealthCheck>> {
    return this.#host.definition.healthChecks ?? {}
  }

  #run(name: string, { check }: HealthCheck): Promise<Health> {
    const { context, stopSignal } = this.#host
    const run = withinLimit(`The check ${name}`, checkTimeoutMs, [stopSignal], (signal) => check(context, signal))
      .then(toHealth)
      .catch((error): Health => ({ status: 'Unhealthy', description: messageOf(error) }))
      .finally(() => this.#runs.delete(name))
    this.#runs.set(name, run)
    return run
  }
}

// A check without tags counts as degradable, as on the platform.
function effectiveStatusOf({ tags }: HealthCheck, status: Health['status']): Health['status'] {
  if (tags.includes('critical') || status === 'Healthy') return status
  return tags.includes('informational') && !tags.includes('degradable') ? 'Healthy' : 'Degraded'
}

// The types do not protect against modules that are written in JavaScript.
function toHealth(health: Partial<Health> | undefined): Health {
  const status = statuses.find((candidate) => candidate === health?.status)
  if (status === undefined) return { status: 'Unhealthy', description: 'The check returned no status.' }
  const description: unknown = health?.description
  return { status, ...(typeof description === 'string' && { description: description.slice(0, 500) }) }
}
