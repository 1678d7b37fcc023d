import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import type { PlatformProcess } from '../platform.ts'

export async function healthyRelay(api: Platform, nodes?: readonly string[]): Promise<Relay> {
  const relay = await api.newRelay(nodes)
  expectStatus(await relay.heartbeat(), 200)
  return relay
}

type WithData = Pick<PlatformProcess, 'dataDir'>

/** Returns the environment for direct access to the store, and the organisation of the administrator. */
export async function storeOf({ dataDir }: WithData, api: Platform) {
  const { organisationId } = expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)
  const environment = awsEnvironment({ ...(await readRuntimeFile(dataDir)), sqsUrl: '' })
  return { organisationId: String(organisationId), environment }
}

export async function seedFleet(platform: WithData, api: Platform, count: number): Promise<void> {
  const { environment, organisationId } = await storeOf(platform, api)
  const { writeFleet, writeItems } = await import('../../bench/support/stored-data.ts')
  const { clusterLabels } = await import('@platform/core/db/keys')
  const { clusterIds } = await writeFleet(environment, count, organisationId)
  const labels = { labels: 'env=prod', derived: 'type=Hypervisor' }
  await writeItems(
    environment,
    clusterIds.map((id) => ({ ...clusterLabels(organisationId, id), ...labels })),
  )
}
