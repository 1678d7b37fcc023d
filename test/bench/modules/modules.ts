import type { Effort, Section } from '../support/section.ts'
import type { Tenant } from '../support/tenant.ts'
import { countCalls } from './calls.ts'
import { measureInstall } from './install.ts'
import { measureScans } from './scans.ts'
import { measureTraffic } from './traffic.ts'

/** What modules cost: in calls, until they run, and on the way of every request to them. */
export async function* measureModules(tenant: Tenant, effort: Effort): AsyncGenerator<Section> {
  yield await countCalls(tenant)
  yield await measureScans()
  yield await measureInstall(effort)
  yield await measureTraffic(effort)
}
