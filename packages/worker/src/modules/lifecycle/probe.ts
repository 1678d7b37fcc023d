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

/** What a probe found. */
export interface Probe {
  /** The health endpoint answered in time, whatever it said: the module lives. */
  answers: boolean
  /** It answered with 2xx: the module is well, or degraded at most. */
  isHealthy: boolean
  /** One for each of `spec.healthChecks`, in their order. */
  checks: CheckResult[]
  published: PublishedEvent[]
}

const Health = z.object({
  status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  description: z.string().optional(),
})

/** Asks a module's health endpoint and every health check of its manifest, all at once. Never throws. */
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

/** What an answer says; a check of a module that knows no SDK may say all by its status. */
function healthIn(status: number, content: unknown): HealthAnswer {
  const { data } = Health.safeParse(content)
  if (!isGood(status)) return unhealthy(data?.description ?? `It answers ${status}.`)
  return data
    ? { status: data.status, ...(data.description !== undefined && { description: data.description }) }
    : { status: 'Healthy' }
}
