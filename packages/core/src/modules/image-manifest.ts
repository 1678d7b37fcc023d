import { isDeepStrictEqual } from 'node:util'
import { manifestBytes, type ModuleManifest } from '@platform/contract/manifest'
import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readFile } from '@platform/oci/image'
import { type Image } from '@platform/oci/types'
import { PlatformError } from '../error.ts'
import { readManifest, type ReadManifest, manifestTooLarge } from './manifest.ts'
import { fetchManifest } from './manifest-source.ts'

/** Finds the manifest of an image. */

/** An image and the registry client that found it. */
export interface FoundImage {
  client: RegistryClient
  image: Image
}

/**
 * The manifest at the given URL, else the one in the image. If the signed image has one, both must be equal. Throws
 * manifest errors and `RegistryError`.
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

const noManifest = 'The image contains no module.json. Add it at /module.json, or set manifestUrl.'

/** Paths of the manifest in an image; the first existing one counts. */
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
