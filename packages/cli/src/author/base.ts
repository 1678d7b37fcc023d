import type { ModuleManifest } from '@platform/contract/manifest'
import { type Platform, readImage, thisPlatform } from '@platform/oci/image'
import { maxLayerBytes } from '@platform/oci/layer'
import type { BuiltLayer } from '@platform/oci/pack'
import type { Image } from '@platform/oci/types'
import { CliError } from '../exit.ts'
import { formatTarget, openRemote, referenceOf, type Remote } from './remote.ts'

/** What an image stands on: nothing but the module, the Node.js of this machine, or another image; and what it is made for. */
export interface Base {
  withNode?: true
  from?: string
  /** Such as `linux/arm64`. */
  platform?: string
}

/** What an image is made for: this machine, where nothing else is wanted. */
export function platformOf({ platform }: Base): Platform {
  if (platform === undefined) return thisPlatform()
  const [os = '', architecture = ''] = platform.split('/')
  return { os, architecture }
}

export const formatPlatform = ({ os, architecture }: Platform): string => `${os}/${architecture}`

/** Opens where the image is that a module's stands on. Only the module's own registry gets the author's password. */
export const openBase = (reference: string, { spec }: ModuleManifest): Remote =>
  openRemote(reference, { isMeant: referenceOf(reference).registry === referenceOf(spec.image).registry })

/** Reads that image. Throws `Failure` where there is none, or one that was made for something else. */
export async function readBase(remote: Remote, platform: Platform): Promise<Image> {
  const base = await readImage(remote.client, remote.repository, remote.target, platform)
  if (base === undefined) throw new CliError('refused', `There is no image ${formatTarget(remote)}.`)
  const [wanted, found] = [platform, base.config].map(formatPlatform)
  if (found !== wanted) {
    throw new CliError(
      'refused',
      `${formatTarget(remote)} is made for ${found}, and the module would be for ${wanted}.`,
    )
  }
  return base
}

/** Layers with their bytes, so that the image can be carried wherever it shall go. */
export async function fetchLayers({ client }: Remote, layers: readonly BuiltLayer[]): Promise<BuiltLayer[]> {
  const fetched: BuiltLayer[] = []
  for (const layer of layers) {
    if ('bytes' in layer) fetched.push(layer)
    else {
      const { descriptor, diffId, repository } = layer
      fetched.push({ descriptor, diffId, bytes: await client.blob(repository, descriptor, maxLayerBytes) })
    }
  }
  return fetched
}
