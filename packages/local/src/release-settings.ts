import { createPublicKey } from 'node:crypto'
import type { TrustedKey } from '@platform/core/lib/settings/key-files'
import { releaseSigningKey } from './generated-secrets.ts'

/** Where releases are in the embedded registry, and looked for unless `PLAT_RELEASE_SOURCE` names another place. */
export const releaseRepository = 'platform/releases'

interface ReleaseSettings {
  dataDir: string
  releaseSource: string | undefined
  releaseKeys: readonly TrustedKey[]
}

/** Where releases come from, and whose signatures make one: those of this platform's own key, and of the operator's. */
export async function releaseEnvironment(
  { dataDir, releaseSource, releaseKeys }: ReleaseSettings,
  registryHost: string,
): Promise<Record<string, string>> {
  const privateKey = await releaseSigningKey(dataDir)
  const ownKey = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
  const own = `${registryHost}/${releaseRepository}`
  return {
    PLAT_RELEASE_SOURCE: releaseSource ?? own,
    PLAT_RELEASE_KEYS: JSON.stringify([{ name: 'this platform', pem: ownKey, repositories: [own] }, ...releaseKeys]),
  }
}
