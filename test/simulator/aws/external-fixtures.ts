import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { moduleEnvironment } from '@platform/local/function-environment'
import { loadOrCreateReleaseSigningKey } from '@platform/local/generated-secrets'
import type { Log } from '@platform/local/log'
import { startEmbeddedModules } from '@platform/local/embedded-modules'
import type { TrustedKey } from '@platform/core/lib/settings/key-files'
import { writerName } from '@platform/local/registry/writer'
import { releaseEnvironment, releaseRepository } from '@platform/local/release-settings'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const assetsDir = join(import.meta.dirname, '../../../dist')

/** Starts a registry outside AWS with the signed reference module and a release repository. */
export async function startExternalFixtures(settings: Readonly<Record<string, string>>, log: Log) {
  await using resources = new AsyncDisposableStack()
  const dataDir = resources.use(await temporaryFolder()).path
  const assets = buildAssets(assetsDir, { names: ['hello.mjs'] })
  const {
    registry,
    publicKey: ownKey,
    needsScan,
    close,
  } = await startEmbeddedModules({ dataDir, registryPort: 0, assetsDir }, assets, log)
  resources.defer(close)
  await needsScan
  const { host, password } = registry
  const keysIn = (name: string): TrustedKey[] => JSON.parse(settings[name] || '[]')
  const modules = { functionEnvironment: settings, trustedKeys: keysIn('PLAT_MODULE_KEYS') }
  const releaseSource = settings['PLAT_RELEASE_SOURCE']
  const environment = {
    ...settings,
    ...moduleEnvironment(modules, { registryHost: host, ownKey }),
    ...(await releaseEnvironment({ dataDir, releaseSource, releaseKeys: keysIn('PLAT_RELEASE_KEYS') }, host)),
  }
  const credentials = async () => ({ username: writerName, password })
  const client = registryClient(host, { transport: plainTransport, credentials })
  const releases = { client, name: releaseRepository, privateKeyPem: await loadOrCreateReleaseSigningKey(dataDir) }
  const started = resources.move()
  return { environment, releases, [Symbol.asyncDispose]: () => started.disposeAsync() }
}
