import { isDeepStrictEqual } from 'node:util'
import { manifestBytes, type ModuleManifest } from '@platform/contract/manifest'
import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readFile } from '@platform/oci/image'
import { type Image } from '@platform/oci/types'
import { PlatformError } from '../error.ts'
import { readManifest, type ReadManifest, manifestTooLarge } from './manifest.ts'
import { fetchManifest } from './manifest-source.ts'

/** The manifest that belongs to an image (D47). */

/** An image, and who has found it. */
export interface FoundImage {
  client: RegistryClient
  image: Image
}

/**
 * The manifest at the address that was given, or else the one in the image. A signature covers the image only: where there
 * is one, what both say must be the same. Throws the faults of a manifest, and `RegistryFailure`.
 */
export async function manifestOf(
  found: FoundImage,
  { manifestUrl, isVerified }: { manifestUrl: string | undefined; isVerified: boolean },
): Promise<ModuleManifest> {
  if (manifestUrl === undefined) {
    const own = await manifestIn(found)
    if (own === undefined) throw new PlatformError('image_not_a_module', noManifest)
    return own.manifest
  }
  const named = readManifest(await fetchManifest(manifestUrl))
  const own = isVerified ? await manifestIn(found) : undefined
  if (own !== undefined && !isDeepStrictEqual(own.document, named.document)) {
    throw new PlatformError('manifest_mismatch', 'The manifest at manifestUrl is not the one in the signed image.')
  }
  return named.manifest
}

const noManifest = 'The image holds no module.json. Put it at /module.json, or name manifestUrl.'

/** Where an image holds its manifest: the first of these that is there. */
function manifestPaths({ config: { config } }: Image): string[] {
  const { WorkingDir: folder = '' } = config
  return ['/module.json', ...(folder === '' ? [] : [`${folder}/module.json`])]
}

async function manifestIn({ client, image }: FoundImage): Promise<ReadManifest | undefined> {
  const bytes = await readFile(client, image, manifestPaths(image), manifestBytes).catch((cause: unknown) => {
    const isTooLarge = cause instanceof RegistryError && cause.problem === 'too_large'
    throw isTooLarge ? manifestTooLarge({ cause }) : cause
  })
  return bytes && readManifest(bytes)
}
