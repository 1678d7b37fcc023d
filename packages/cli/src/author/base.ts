import type { ModuleManifest } from '@platform/contract/manifest'
import { readImage } from '@platform/registry/image'
import { maxLayerBytes } from '@platform/registry/layer'
import type { BuiltLayer } from '@platform/registry/pack'
import type { Image } from '@platform/registry/types'
import { Failure } from '../exit.ts'
import { formatTarget, openRemote, referenceOf, type Remote } from './remote.ts'

/** Opens where the image is that a module's stands on. Only the module's own registry gets the author's password. */
export const openBase = (reference: string, { spec }: ModuleManifest): Remote =>
  openRemote(reference, { isMeant: referenceOf(reference).registry === referenceOf(spec.image).registry })

/** Reads that image. Throws `Failure` where there is none. */
export async function readBase(remote: Remote): Promise<Image> {
  const base = await readImage(remote.client, remote.repository, remote.target)
  if (base === undefined) throw new Failure('refused', `There is no image ${formatTarget(remote)}.`)
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
