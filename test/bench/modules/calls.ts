import { shiftClock } from '@platform/core/clock'
import type { GatewayHandler } from '@platform/http/response'
import { tokenOf } from '@platform/worker/runtimes/token'
import { handler as gateway } from '../../../functions/gateway/modules.ts'
import { handler as modules } from '../../../functions/modules.ts'
import { handler as portal } from '../../../functions/portal-data.ts'
import { deploymentOf, catalogRelease, putCatalog, putModule, releaseFor } from '../../core/support/modules.ts'
import { send } from '../../support/request.ts'
import { metered, storeCallsOf } from '../support/meter.ts'
import { atMost, type Goal, type Section } from '../support/section.ts'
import { accepted, getting, newToken, type Tenant } from '../support/tenant.ts'
import { helloManifest, startHello } from './hello.ts'

/** How long a function believes what it has read of where modules run, with a margin. */
const believedMs = 1100

interface Row {
  operation: string
  handler: GatewayHandler
  target: string
  /** The most calls of the store. */
  limit: number
  isLater?: true
}

const operations: Row[] = [
  { operation: 'GET /modules/catalog', handler: modules, target: '/api/v1/modules/catalog', limit: 2 },
  { operation: 'GET /modules', handler: modules, target: '/api/v1/modules', limit: 1 },
  { operation: 'GET /portal/navigation', handler: portal, target: '/api/v1/portal/navigation', limit: 1 },
  { operation: 'GET /portal/summary', handler: portal, target: '/api/v1/portal/summary', limit: 3 },
  { operation: 'GET /api/hello, after a second', handler: gateway, target: '/api/hello', limit: 1, isLater: true },
  { operation: 'GET /api/hello, within a second', handler: gateway, target: '/api/hello', limit: 0 },
  { operation: 'GET /modules/hello, within a second', handler: gateway, target: '/modules/hello', limit: 0 },
]

/** What is asked of the store for modules, with one module that runs. */
export async function countCalls({ organisationId }: Tenant): Promise<Section> {
  const release = releaseFor('hello', { manifest: await helloManifest() })
  const deployment = deploymentOf(release)
  await using hello = await startHello(await tokenOf(deployment.id))
  await putModule(release, { deployment: { ...deployment, handle: hello.socket } })
  await putCatalog({ [release.repository]: [catalogRelease('hello', release.version)] })

  const accessToken = await newToken(organisationId)
  for (const { handler, target } of operations) accepted(await send(handler, getting(target, accessToken)))
  const [rows, goals]: [Section['rows'], Goal[]] = [[], []]
  for (const { operation, handler, target, limit, isLater } of operations) {
    if (isLater) shiftClock(believedMs)
    const { result, usage } = await metered(() => send(handler, getting(target, accessToken)))
    const storeCalls = storeCallsOf(usage)
    rows.push([operation, storeCalls, usage.rounds, usage.readUnits, Buffer.byteLength(accepted(result).text)])
    goals.push(atMost(`${operation}: store calls`, storeCalls, limit))
  }
  return {
    title: 'Modules: calls and capacity',
    columns: ['operation', 'store calls', 'rounds', 'read units', 'answer bytes'],
    rows,
    goals,
  }
}
