import type { ModuleManifest } from '@platform/contract/manifest'
import { now } from '@platform/core/clock'
import type { Deployment } from '@platform/core/modules/deployment'
import * as z from 'zod'
import type { ModuleClient } from '../../runtimes/port.ts'
import type { HealthResponse, PublishedEvent } from '@platform/modules/protocol'
import { responseTo, jsonOf, sanitize } from './control-client.ts'
import { publishedIn } from './published.ts'

type DeclaredCheck = ModuleManifest['spec']['healthChecks'][number]

export interface CheckResult {
  name: string
  status: HealthResponse['status']
  tags: DeclaredCheck['tags']
  description: string
  durationMs: number
  checkedAtMs: number
}

export interface Probe {
  /** The health endpoint answered in time, with any status: the module is alive. */
  isResponding: boolean
  /** The health endpoint answered with 2xx: the module is healthy, or at most degraded. */
  isHealthy: boolean
  /** One result for each of `spec.healthChecks`, in order. */
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

  async function request(path: string) {
    const response = await responseTo(runtime, deployment, timeoutMs, { method: 'GET', path })
    if (typeof response !== 'string') published.push(...publishedIn(deployment.moduleId, response.headers))
    return response
  }

  async function check({ name, path, tags }: DeclaredCheck): Promise<CheckResult> {
    const startedAtMs = performance.now()
    const response = await request(path)
    const { status, description } =
      typeof response === 'string' ? unhealthyResponse(response) : healthOf(response.status, jsonOf(response))
    const durationMs = Math.round(performance.now() - startedAtMs)
    return { name, status, tags, description: sanitize(description ?? '', 500), durationMs, checkedAtMs: now() }
  }

  const [endpoint, ...checks] = await Promise.all([request(spec.healthEndpoint), ...spec.healthChecks.map(check)])
  const isResponding = typeof endpoint !== 'string'
  return { isResponding, isHealthy: isResponding && isSuccess(endpoint.status), checks, published }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

const unhealthyResponse = (description: string): HealthResponse => ({ status: 'Unhealthy', description })

/** Returns the health in a response. A module without the SDK may report it with the status alone. */
function healthOf(status: number, content: unknown): HealthResponse {
  const { data } = Health.safeParse(content)
  if (!isSuccess(status)) return unhealthyResponse(data?.description ?? `It returned ${status}.`)
  return data
    ? { status: data.status, ...(data.description !== undefined && { description: data.description }) }
    : { status: 'Healthy' }
}
