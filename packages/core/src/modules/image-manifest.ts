import { isDeepStrictEqual } from 'node:util'
import { manifestBytes, type ModuleManifest } from '@platform/contract/manifest'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readFile } from '@platform/oci/image'
import type { Image } from '@platform/oci/types'
import { PlatformError } from '../error.ts'
import { manifestTooLargeError, type ParsedManifest, parseManifest } from './manifest.ts'
import { fetchManifest } from './manifest-source.ts'

export interface ImageSource {
  client: RegistryClient
  image: Image
}

/**
 * Reads the manifest at `manifestUrl` if it is set, otherwise the one in the image. If a verified image contains a
 * manifest, the one at `manifestUrl` must be equal to it.
 */
export async function manifestOf(
  source: ImageSource,
  { manifestUrl, isVerified }: { manifestUrl: string | undefined; isVerified: boolean },
): Promise<ModuleManifest> {
  if (manifestUrl === undefined) {
    const embeddedManifest = await readEmbeddedManifest(source)
    if (embeddedManifest === undefined) throw new PlatformError('image_not_a_module', noManifestMessage)
    return embeddedManifest.manifest
  }
  const hostedManifest = parseManifest(await fetchManifest(manifestUrl))
  const embeddedManifest = isVerified ? await readEmbeddedManifest(source) : undefined
  if (embeddedManifest !== undefined && !isDeepStrictEqual(embeddedManifest.document, hostedManifest.document)) {
    throw new PlatformError('manifest_mismatch', 'The manifest at manifestUrl is not the one in the signed image.')
  }
  return hostedManifest.manifest
}

const noManifestMessage = 'The image contains no module.json. Add it at /module.json, or set manifestUrl.'

/** Returns the paths in the order of precedence. */
function manifestPaths({ config: { config } }: Image): string[] {
  const { WorkingDir: folder = '' } = config
  return ['/module.json', ...(folder === '' ? [] : [`${folder}/module.json`])]
}

async function readEmbeddedManifest({ client, image }: ImageSource): Promise<ParsedManifest | undefined> {
  const bytes = await readFile(client, image, manifestPaths(image), manifestBytes).catch((cause: unknown) => {
    const isTooLarge = cause instanceof RegistryError && cause.problem === 'too_large'
    throw isTooLarge ? manifestTooLargeError({ cause }) : cause
  })
  return bytes && parseManifest(bytes)
}
