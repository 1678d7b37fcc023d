import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { type ModuleRelease } from '@platform/core/modules/record'
import { registryClientFor } from '@platform/core/modules/registries'
import { readImage } from '@platform/oci/image'
import { parseReference } from '@platform/oci/reference'
import { verifyImage } from '@platform/oci/signature/verify'
import { OperationFailure } from './errors.ts'

const registryMs = 30_000

/**
 * Verifies a release again before use: its image must still exist, and its signature is checked again because keys may
 * have left the trust list since it was accepted. The rest is immutable, because it is identified by digest. A handful
 * of requests.
 */
export async function reverifyRelease(release: ModuleRelease): Promise<ModuleRelease> {
  const { verifiedBy: _, ...unverified } = release
  const { registry = '', repository = '' } = parseReference(release.repository) ?? {}
  const client = registryClientFor(registry, { untilMs: now() + registryMs })
  const image = await readImage(client, repository, release.digest)
  if (image === undefined) throw new OperationFailure(`${release.repository}@${release.digest} no longer exists.`)
  // The image of this digest runs: a signature of one member of an index does not cover the others.
  const verdict = await verifyImage(client, repository, [release.digest], config.PLAT_MODULE_KEYS, { atMs: now() })
  if (verdict.isVerified) return { ...unverified, isVerified: true, verifiedBy: verdict.by }
  if (config.PLAT_ALLOW_UNVERIFIED_MODULES !== 'true') throw new OperationFailure(verdict.reason)
  return { ...unverified, isVerified: false }
}
