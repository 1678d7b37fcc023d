import { readBlob, readIndex, readManifest, tagOf as tagIn } from '@platform/oci/layout-folder'
import { maxLayerBytes } from '@platform/oci/layer'
import { packLayer } from '@platform/oci/pack'
import { formatReference } from '@platform/oci/reference'
import { signImage } from '@platform/oci/signature/sign'
import type { Descriptor, Manifest } from '@platform/oci/types'
import { isDeepStrictEqual } from 'node:util'
import { CliError } from '../exit.ts'
import { bundle } from './bundle.ts'
import { filesOf } from './image.ts'
import { currentManifest, tagOf } from './manifest.ts'
import { type Project, readManifest as readOwnManifest } from './project.ts'
import { openRemote, referenceOf, type Remote } from './remote.ts'

export interface PushedImage {
  /** Image reference: `registry/repository:tag`. */
  image: string
  digest: string
}

// `to` is the target repository, by default the manifest's. `tags` replace the version and `latest`. `privateKeyPem`
// signs the image.
interface PushOptions {
  to?: string
  tags?: readonly string[]
  privateKeyPem?: string
}

/**
 * Pushes the built image, by default with its version and `latest` as tags. With a key, signs the image before a tag
 * refers to it. Throws `RegistryError`, or `CliError`, for example if the image does not match the code.
 */
export async function pushProject(project: Project, { to, tags, privateKeyPem }: PushOptions): Promise<PushedImage> {
  const { version, image } = await builtImage(project)
  const remoteImage = openRemote(to === undefined ? image.reference : repositoryOf(to))
  const { client, repository } = remoteImage
  await uploadImage(project, remoteImage, image)
  if (privateKeyPem !== undefined) await signImage(client, repository, image.digest, privateKeyPem)
  const tag = tagOf(version)
  for (const each of tags ?? [tag, 'latest'])
    await client.putManifest(repository, each, image.bytes, image.content.mediaType)
  return {
    image: formatReference({ registry: client.registry, repository, tag: tags?.[0] ?? tag }),
    digest: image.digest,
  }
}

function repositoryOf(text: string): string {
  const { tag, digest } = referenceOf(text)
  if (tag === undefined && digest === undefined) return text
  throw new CliError('usage', '--to takes a repository without a tag. The tags are the version and latest.')
}

interface FoundImage {
  digest: string
  content: Manifest
  bytes: Buffer
}

// Compares the built image with the code, so that an outdated image is not pushed under a new version.
async function builtImage(project: Project) {
  const manifest = await currentManifest(project)
  const { metadata, spec } = manifest
  const foundImage = await findImage(project)
  const isWritten = isDeepStrictEqual(await readOwnManifest(project), { ...manifest })
  const top = await packLayer(await filesOf(project, await bundle(project)))
  if (!isWritten || foundImage.content.layers.at(-1)?.digest !== top.descriptor.digest) {
    throw new CliError('usage', `${project.imageFolder} does not match the current code. ${buildFirst}`)
  }
  return { version: metadata.version, image: { ...foundImage, reference: spec.image } }
}

const buildFirst = 'Run first: plat module build'

async function findImage({ imageFolder }: Project): Promise<FoundImage> {
  const entry = (await readIndex(imageFolder))?.find((each: Descriptor) => tagIn(each) === 'latest')
  if (entry === undefined) throw new CliError('usage', `No image in ${imageFolder}. ${buildFirst}`)
  const { content, bytes } = await readManifest(imageFolder, entry.digest)
  if ('manifests' in content)
    throw new CliError('usage', `${imageFolder} does not contain a module image. ${buildFirst}`)
  return { digest: entry.digest, content, bytes }
}

// Registries require layers and configuration before the manifest.
async function uploadImage({ imageFolder }: Project, { client, repository }: Remote, image: FoundImage): Promise<void> {
  const { config, layers, mediaType } = image.content
  for (const { digest } of [...layers, config]) {
    await client.putBlob(repository, await readBlob(imageFolder, digest, maxLayerBytes))
  }
  await client.putManifest(repository, image.digest, image.bytes, mediaType)
}
