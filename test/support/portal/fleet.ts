import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { answered } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import type { PlatformProcess } from '../platform.ts'

/** Clusters for tests of the portal. */

/** A cluster with a relay that beats once; under `lasting` it is not expected again while the tests run. */
export async function beating(api: Platform, nodes?: readonly string[]): Promise<Relay> {
  const relay = await api.newRelay(nodes)
  answered(await relay.beat(), 200)
  return relay
}

/** Gives the administrator's organisation, which must have no clusters yet, so many: straight into the store, in seconds. */
export async function seedFleet(
  platform: Pick<PlatformProcess, 'dataDir'>,
  api: Platform,
  count: number,
): Promise<void> {
  const { organisationId } = answered(await (await api.admin).get('/api/v1/auth/me'), 200)
  const environment = awsEnvironment({ ...(await readRuntimeFile(platform.dataDir)), sqsUrl: '' })
  const { writeFleet } = await import('../../../bench/paging/fleet.ts')
  await writeFleet(environment, count, organisationId)
}
