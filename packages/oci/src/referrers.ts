import { digestOf, digestTag } from './digest.ts'
import { IndexDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { findManifest, uploadManifest } from './manifests.ts'
import { scopeOf } from './names.ts'
import { pagesOf } from './paging.ts'
import { type Descriptor, type Index, type Manifest, mediaTypes } from './types.ts'
import type { RegistryConnection, RepositoryConnection } from './connection.ts'

export async function listReferrers(
  target: RepositoryConnection,
  digest: string,
  artifactType: string | undefined,
): Promise<Descriptor[]> {
  const apiReferrers = await referrersFromApi(target, digest, artifactType)
  const referrers = apiReferrers ?? (await findTaggedIndex(target, digest))?.manifests ?? []
  // Registries may ignore the requested artifact type.
  return referrers.filter((descriptor) => artifactType === undefined || descriptor.artifactType === artifactType)
}

/**
 * Statuses of registries without a referrers API. The specification defines 404. Some registries return 400, 405, 406
 * or 501 instead, and some redirect to a web page, as GitHub's does.
 */
const statusesWithoutApi = [400, 404, 405, 406, 501, 301, 302, 303, 307, 308]

/** Returns undefined if the registry has no referrers API. */
async function referrersFromApi(
  target: RepositoryConnection,
  digest: string,
  artifactType: string | undefined,
): Promise<Descriptor[] | undefined> {
  const url = target.urlOf(`${target.repository}/referrers/${digest}`)
  if (artifactType !== undefined) url.searchParams.set('artifactType', artifactType)
  const call = { description: `the referrers of ${digest}`, url, scopes: [scopeOf(target.repository, 'pull')] }
  const headers = { accept: mediaTypes.index }
  const pages = pagesOf(target, { ...call, headers, page: IndexDocument, statusesWithoutList: statusesWithoutApi })
  let descriptors: Descriptor[] | undefined
  for await (const { manifests } of pages) descriptors = [...(descriptors ?? []), ...manifests]
  return descriptors
}

async function findTaggedIndex(target: RepositoryConnection, digest: string): Promise<Index | undefined> {
  const content = (await findManifest(target, digestTag(digest)))?.content
  if (content === undefined || 'manifests' in content) return content
  const message = `Registry ${target.registry} has no referrers index of ${digest}: its tag refers to other content. Remove the tag.`
  throw new RegistryError('invalid', message)
}

const maxAttempts = 3

/**
 * Uploads a manifest with a subject. If the registry has no referrers API, also updates the tagged list and verifies
 * it, because a concurrent update may overwrite it. Repeats a lost update.
 */
export async function addReferrer(
  target: RepositoryConnection,
  manifest: Manifest & { subject: Descriptor },
): Promise<Descriptor> {
  const bytes = Buffer.from(JSON.stringify(manifest))
  const { mediaType, artifactType, annotations, subject } = manifest
  const upload = await uploadManifest(target, digestOf(bytes), bytes, mediaType)
  const descriptor: Descriptor = {
    ...upload.descriptor,
    ...(artifactType !== undefined && { artifactType }),
    ...(annotations !== undefined && { annotations }),
  }
  if (upload.isReferrerListed) return descriptor
  for (let attemptCount = 0; ; attemptCount += 1) {
    const index = (await findTaggedIndex(target, subject.digest)) ?? emptyIndex
    if (index.manifests.some(({ digest }) => digest === descriptor.digest)) return descriptor
    if (attemptCount === maxAttempts) throw notStoredError(target, subject)
    const nextIndex: Index = { ...index, manifests: [...index.manifests, descriptor] }
    const indexBytes = Buffer.from(JSON.stringify(nextIndex))
    await uploadManifest(target, digestTag(subject.digest), indexBytes, mediaTypes.index)
  }
}

const notStoredError = ({ registry }: RegistryConnection, { digest }: Descriptor): RegistryError =>
  new RegistryError('refused', `Registry ${registry} does not store the referrers of ${digest}. Try again.`)

const emptyIndex: Index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [] }
