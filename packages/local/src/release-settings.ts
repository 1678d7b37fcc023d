import { createPublicKey } from 'node:crypto'
import type { TrustedKey } from '@platform/core/lib/settings/key-files'
import { loadOrCreateReleaseSigningKey } from './generated-secrets.ts'

/** Repository of releases in the embedded registry; the default of `PLAT_RELEASE_SOURCE`. */
export const releaseRepository = 'platform/releases'

interface ReleaseSettings {
  dataDir: string
  releaseSource: string | undefined
  releaseKeys: readonly TrustedKey[]
}

/** Returns variables of the functions. The platform's own key verifies only releases of the embedded registry. */
export async function releaseEnvironment(
  { dataDir, releaseSource, releaseKeys }: ReleaseSettings,
  registryHost: string,
): Promise<Record<string, string>> {
  const privateKey = await loadOrCreateReleaseSigningKey(dataDir)
  const ownKey = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
  const ownSource = `${registryHost}/${releaseRepository}`
  return {
    PLAT_RELEASE_SOURCE: releaseSource ?? ownSource,
    PLAT_RELEASE_KEYS: JSON.stringify([
      { name: 'this platform', pem: ownKey, repositories: [ownSource] },
      ...releaseKeys,
    ]),
  }
}
