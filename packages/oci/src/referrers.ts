import { digestOf, digestTag } from './digest.ts'
import { IndexDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { findManifest, sendManifest } from './manifests.ts'
import { scopeOf } from './names.ts'
import { pagesOf } from './paging.ts'
import { type Descriptor, type Index, type Manifest, mediaTypes } from './types.ts'
import type { RegistryConnection } from './connection.ts'

/**
 * What refers to a digest. One request for each page, and one more where the registry keeps no such list: clients then keep
 * one under a tag of the digest.
 */
export async function listReferrers(
  wire: RegistryConnection,
  repository: string,
  digest: string,
  artifactType: string | undefined,
): Promise<Descriptor[]> {
  const told = await toldReferrers(wire, repository, digest, artifactType)
  const found = told ?? (await taggedIndex(wire, repository, digest))?.manifests ?? []
  // A registry need not filter.
  return found.filter((descriptor) => artifactType === undefined || descriptor.artifactType === artifactType)
}

/**
 * How registries tell that they keep no such list: 404 is what the specification says. Others take the path for a wrong name,
 * method or form, do not know it, or lead to a page for people, as GitHub's does.
 */
const withoutList = [400, 404, 405, 406, 501, 301, 302, 303, 307, 308]

/** The registry's own list; undefined where it has none. */
async function toldReferrers(
  wire: RegistryConnection,
  repository: string,
  digest: string,
  artifactType: string | undefined,
): Promise<Descriptor[] | undefined> {
  const url = wire.at(`${repository}/referrers/${digest}`)
  if (artifactType !== undefined) url.searchParams.set('artifactType', artifactType)
  const call = { what: `what refers to ${digest}`, url, scopes: [scopeOf(repository, 'pull')] }
  const headers = { accept: mediaTypes.index }
  const pages = pagesOf(wire, { ...call, headers, page: IndexDocument, absent: withoutList })
  let descriptors: Descriptor[] | undefined
  for await (const { manifests } of pages) descriptors = [...(descriptors ?? []), ...manifests]
  return descriptors
}

async function taggedIndex(wire: RegistryConnection, repository: string, digest: string): Promise<Index | undefined> {
  const content = (await findManifest(wire, repository, digestTag(digest)))?.content
  if (content === undefined || 'manifests' in content) return content
  const message = `Registry ${wire.registry} has no list of what refers to ${digest}: its tag is something else. Remove it.`
  throw new RegistryError('invalid', message)
}

const mostTries = 3

/**
 * Sends a manifest that refers to another. One request where the registry keeps the list. Else two more and one to see that
 * it holds: whoever writes the same list at the same time may have undone it, and then it is done again.
 */
export async function addReferrer(
  wire: RegistryConnection,
  repository: string,
  manifest: Manifest & { subject: Descriptor },
): Promise<Descriptor> {
  const bytes = Buffer.from(JSON.stringify(manifest))
  const { mediaType, artifactType, annotations, subject } = manifest
  const sent = await sendManifest(wire, repository, digestOf(bytes), bytes, mediaType)
  const descriptor: Descriptor = {
    ...sent.descriptor,
    ...(artifactType !== undefined && { artifactType }),
    ...(annotations !== undefined && { annotations }),
  }
  if (sent.isReferrerKept) return descriptor
  for (let tries = 0; ; tries += 1) {
    const index = (await taggedIndex(wire, repository, subject.digest)) ?? emptyIndex
    if (index.manifests.some(({ digest }) => digest === descriptor.digest)) return descriptor
    if (tries === mostTries) throw notKept(wire, subject)
    const next: Index = { ...index, manifests: [...index.manifests, descriptor] }
    const text = Buffer.from(JSON.stringify(next))
    await sendManifest(wire, repository, digestTag(subject.digest), text, mediaTypes.index)
  }
}

const notKept = ({ registry }: RegistryConnection, { digest }: Descriptor): RegistryError =>
  new RegistryError('refused', `Registry ${registry} does not keep the list of what refers to ${digest}. Try again.`)

const emptyIndex: Index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [] }
