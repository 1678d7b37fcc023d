import { Agent, get } from 'node:http'

/** Clients that call without pause, and their results. */
export interface ContinuousClients {
  requests: number
  failures: string[]
  /** The versions that have responded. */
  versions: ReadonlySet<string>
  /** Resolves after `count` more responses. */
  more: (count: number) => Promise<void>
  /** Resolves after the last response of each client. */
  stop: () => Promise<void>
}

const paths = ['/health/live', '/api/v1/clusters', '/api/v1/sites', '/.well-known/jwks.json']

/** Starts clients that each use one connection. */
export function startClients(url: string, count = 10): ContinuousClients {
  const versions = new Set<string>()
  const results = { requests: 0, failures: [] as string[], versions }
  const stopping = new AbortController()
  const waits: { until: number; resolve: () => void }[] = []
  const run = async (_: unknown, number: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let index = number; !stopping.signal.aborted; index++) {
      try {
        const { status, version } = await request(`${url}${paths[index % paths.length]}`, agent)
        if (status === 200) versions.add(version)
        else results.failures.push(`status ${status}`)
      } catch (error) {
        results.failures.push(String(error))
      }
      results.requests += 1
      for (const { until, resolve } of waits) if (results.requests >= until) resolve()
    }
    agent.destroy()
  }
  const running = Array.from({ length: count }, run)
  return Object.assign(results, {
    more: (more: number) =>
      new Promise<void>((resolve) => void waits.push({ until: results.requests + more, resolve })),
    stop: async () => {
      stopping.abort()
      await Promise.all(running)
    },
  })
}

/** Sends one request; resolves with its status and the version that the function reports. */
export const request = (url: string, agent?: Agent): Promise<{ status: number; version: string }> =>
  new Promise((resolve, reject) => {
    get(url, { ...(agent && { agent }) }, (response) => {
      const { statusCode = 0, headers } = response
      response.on('error', reject)
      response.on('end', () => resolve({ status: statusCode, version: String(headers['x-version']) }))
      response.resume()
    }).on('error', reject)
  })
