import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'
import { scan } from '@platform/worker/modules/scan'
import { metered, storeCallsOf } from '../support/meter.ts'
import { atMost, type Goal, type Section } from '../support/section.ts'
import { range } from '../support/statistics.ts'
import { registry } from './registry.ts'

const repositories = 20

/** Requests that this process has made to the registry. */
let requests = 0

subscribe('http.client.request.start', (message) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node documents what this channel carries
  const { request } = message as { request: ClientRequest }
  if (request.getHeader('host') === registry.host) requests++
})

/** What looking at the sources of the catalog costs: the first time, and every few minutes from then on. */
export async function measureScans(): Promise<Section> {
  const [rows, goals]: [Section['rows'], Goal[]] = [[], []]
  const look = async (situation: string, limits: { storeCalls: number; requests: number }) => {
    requests = 0
    const startedAtMs = performance.now()
    const { usage } = await metered(() => scan(`${registry.host}/*`))
    const ms = performance.now() - startedAtMs
    const storeCalls = storeCallsOf(usage)
    rows.push([situation, storeCalls, usage.readUnits, usage.writeUnits, requests, ms])
    goals.push(atMost(`a scan, ${situation}: store calls`, storeCalls, limits.storeCalls))
    goals.push(atMost(`a scan, ${situation}: requests to the registry`, requests, limits.requests))
  }
  for (const index of range(repositories)) await registry.push(`module-${index}`)
  await look(`${repositories} modules, all new`, { storeCalls: 3, requests: 12 * repositories })
  await registry.push('module-0', { version: '1.1.0' })
  await look(`${repositories} modules, a release more`, { storeCalls: 2, requests: 6 * repositories })
  await look(`${repositories} modules, nothing new`, { storeCalls: 2, requests: 6 * repositories })
  return {
    title: 'Modules: looking at the sources',
    columns: ['situation', 'store calls', 'read units', 'write units', 'requests to the registry', 'ms'],
    rows,
    goals,
  }
}
