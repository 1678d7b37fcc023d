import type { ModuleManifest } from '@platform/contract/manifest'
import { currentPlatform, type Platform, readImage } from '@platform/oci/image'
import { maxLayerBytes } from '@platform/oci/layer'
import type { BuiltLayer } from '@platform/oci/pack'
import type { Image } from '@platform/oci/types'
import { CliError } from '../exit.ts'
import { formatTarget, openRemote, referenceOf, type Remote } from './remote.ts'

/** The base of an image: nothing, the Node.js of this machine (`withNode`), or another image (`from`). */
export interface Base {
  withNode?: true
  from?: string
  /** Target platform, such as `linux/arm64`. */
  platform?: string
}

/** Returns the target platform of an image. The default is the platform of this machine. */
export function platformOf({ platform }: Base): Platform {
  if (platform === undefined) return currentPlatform()
  const [os = '', architecture = ''] = platform.split('/')
  return { os, architecture }
}

export const formatPlatform = ({ os, architecture }: Platform): string => `${os}/${architecture}`

/** Opens the base image. The credentials of the environment are used only for the module's own registry. */
export const openBase = (reference: string, { spec }: ModuleManifest): Remote =>
  openRemote(reference, { isTarget: referenceOf(reference).registry === referenceOf(spec.image).registry })

/** Reads the base image. Throws `CliError` if it is missing or built for another platform. */
export async function readBase(remoteImage: Remote, platform: Platform): Promise<Image> {
  const base = await readImage(remoteImage.client, remoteImage.repository, remoteImage.target, platform)
  if (base === undefined) throw new CliError('refused', `Image not found: ${formatTarget(remoteImage)}.`)
  const [expected, actual] = [platform, base.config].map(formatPlatform)
  if (actual !== expected) {
    throw new CliError(
      'refused',
      `${formatTarget(remoteImage)} is built for ${actual}, but the module for ${expected}.`,
    )
  }
  return base
}

/** Downloads the layers that are not available locally, so that the image layout contains all layers. */
export async function fetchLayers({ client }: Remote, layers: readonly BuiltLayer[]): Promise<BuiltLayer[]> {
  const fetchedLayers: BuiltLayer[] = []
  for (const layer of layers) {
    if ('bytes' in layer) fetchedLayers.push(layer)
    else {
      const { descriptor, diffId, repository } = layer
      fetchedLayers.push({ descriptor, diffId, bytes: await client.blob(repository, descriptor, maxLayerBytes) })
    }
  }
  return fetchedLayers
}
