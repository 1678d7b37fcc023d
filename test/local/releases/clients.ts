import { Agent, get } from 'node:http'

/** What clients were answered: how often each status and version. */
export interface Hammering {
  requests: number
  failures: string[]
  versions: ReadonlySet<string>
  /** Resolves once so many more requests were answered. */
  more: (count: number) => Promise<void>
  /** Resolves once every client has its last answer. */
  stop: () => Promise<void>
}

const usualPaths = ['/health/live', '/api/v1/clusters', '/api/v1/sites', '/.well-known/jwks.json']

/** Clients that ask again as soon as they are answered, each on a connection that it keeps. */
export function hammer(url: string, clients = 10, paths: readonly string[] = usualPaths): Hammering {
  const versions = new Set<string>()
  const own = { requests: 0, failures: [] as string[], versions }
  const over = new AbortController()
  const waiting: { until: number; resolve: () => void }[] = []
  const client = async (_: unknown, number: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let turn = number; !over.signal.aborted; turn++) {
      try {
        const { status, version } = await ask(`${url}${paths[turn % paths.length]}`, agent)
        if (status === 200) versions.add(version)
        else own.failures.push(`status ${status}`)
      } catch (error) {
        own.failures.push(String(error))
      }
      own.requests += 1
      for (const { until, resolve } of waiting) if (own.requests >= until) resolve()
    }
    agent.destroy()
  }
  const running = Array.from({ length: clients }, client)
  return Object.assign(own, {
    more: (count: number) =>
      new Promise<void>((resolve) => void waiting.push({ until: own.requests + count, resolve })),
    stop: async () => {
      over.abort()
      await Promise.all(running)
    },
  })
}

/** One request; answers its status and the version that the function said. */
export const ask = (url: string, agent?: Agent): Promise<{ status: number; version: string }> =>
  new Promise((resolve, reject) => {
    get(url, { ...(agent && { agent }) }, (response) => {
      const { statusCode = 0, headers } = response
      response.on('error', reject)
      response.on('end', () => resolve({ status: statusCode, version: String(headers['x-version']) }))
      response.resume()
    }).on('error', reject)
  })
