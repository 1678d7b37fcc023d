import { type ModuleManifest } from '@platform/contract/manifest'
import { now } from '@platform/core/clock'
import { type Deployment } from '@platform/core/modules/record'
import * as z from 'zod'
import { type ModuleClient } from '../../runtimes/port.ts'
import { type HealthAnswer, type PublishedEvent } from '@platform/modules/protocol'
import { responseTo, jsonOf, plain } from './control-client.ts'
import { publishedIn } from './published.ts'

type HealthCheckClaim = ModuleManifest['spec']['healthChecks'][number]

/** The result of one health check of a module. */
export interface CheckResult {
  name: string
  status: HealthAnswer['status']
  tags: HealthCheckClaim['tags']
  description: string
  durationMs: number
  checkedAtMs: number
}

/** The result of a probe. */
export interface Probe {
  /** The health endpoint answered in time, with any status: the module is alive. */
  answers: boolean
  /** The health endpoint answered with 2xx: the module is healthy, or at most degraded. */
  isHealthy: boolean
  /** One for each of `spec.healthChecks`, in order. */
  checks: CheckResult[]
  published: PublishedEvent[]
}

const Health = z.object({
  status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  description: z.string().optional(),
})

/** Calls a module's health endpoint and all health checks of its manifest concurrently. Never throws. */
export async function probe(
  runtime: ModuleClient,
  deployment: Deployment,
  { spec }: ModuleManifest,
  { timeoutMs = 5000 }: { timeoutMs?: number } = {},
): Promise<Probe> {
  const published: PublishedEvent[] = []

  async function get(path: string) {
    const answer = await responseTo(runtime, deployment, timeoutMs, { method: 'GET', path })
    if (typeof answer !== 'string') published.push(...publishedIn(deployment.moduleId, answer.headers))
    return answer
  }

  async function check({ name, path, tags }: HealthCheckClaim): Promise<CheckResult> {
    const startedAtMs = performance.now()
    const answer = await get(path)
    const { status, description } =
      typeof answer === 'string' ? unhealthy(answer) : healthIn(answer.status, jsonOf(answer))
    const durationMs = Math.round(performance.now() - startedAtMs)
    return { name, status, tags, description: plain(description ?? '', 500), durationMs, checkedAtMs: now() }
  }

  const [endpoint, ...checks] = await Promise.all([get(spec.healthEndpoint), ...spec.healthChecks.map(check)])
  const answers = typeof endpoint !== 'string'
  return { answers, isHealthy: answers && isGood(endpoint.status), checks, published }
}

const isGood = (status: number): boolean => status >= 200 && status < 300

const unhealthy = (description: string): HealthAnswer => ({ status: 'Unhealthy', description })

/** The health in a response. A module without the SDK may report it by the status alone. */
function healthIn(status: number, content: unknown): HealthAnswer {
  const { data } = Health.safeParse(content)
  if (!isGood(status)) return unhealthy(data?.description ?? `It answers ${status}.`)
  return data
    ? { status: data.status, ...(data.description !== undefined && { description: data.description }) }
    : { status: 'Healthy' }
}
