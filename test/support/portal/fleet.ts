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

export async function seedFleet(
  platform: Pick<PlatformProcess, 'dataDir'>,
  api: Platform,
  count: number,
): Promise<void> {
  const { organisationId } = expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)
  const environment = awsEnvironment({ ...(await readRuntimeFile(platform.dataDir)), sqsUrl: '' })
  const { writeFleet } = await import('../../bench/support/stored-data.ts')
  await writeFleet(environment, count, organisationId)
}
