import { isDigest } from '@platform/oci/digest'

export type Target =
  | { kind: 'base' | 'catalog' }
  | { kind: 'tags' | 'uploads'; repository: string }
  /** `reference` is a tag or a digest. */
  | { kind: 'manifest'; repository: string; reference: string }
  | { kind: 'blob' | 'referrers'; repository: string; digest: string }
  | { kind: 'upload'; repository: string; uploadId: string }

const part = '[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*'
const repositoryName = new RegExp(`^${part}(?:/${part})*$`)
const tagName = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const uploadName = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const maxNameLength = 255

/** A valid name is also a safe file path: no segment is empty or begins with a dot. */
export const isRepository = (text: string): boolean => text.length <= maxNameLength && repositoryName.test(text)

const isReference = (text: string): boolean => isDigest(text) || tagName.test(text)

/** Returns undefined for a path outside the API or with an invalid name. Valid names need no percent-encoding. */
export function parsePath(path: string): Target | undefined {
  if (path === '/v2' || path === '/v2/') return { kind: 'base' }
  if (path === '/v2/_catalog') return { kind: 'catalog' }
  // The last segments determine the kind, because a repository may be called `manifests`.
  const [, repository = '', kind = '', last = ''] =
    /^\/v2\/(.+)\/(blobs\/uploads|blobs|manifests|referrers|tags)\/([^/]*)$/.exec(path) ?? []
  return isRepository(repository) ? targetOf(repository, kind, last) : undefined
}

function targetOf(repository: string, kind: string, last: string): Target | undefined {
  if (kind === 'blobs/uploads' && last === '') return { kind: 'uploads', repository }
  if (kind === 'blobs/uploads' && uploadName.test(last)) return { kind: 'upload', repository, uploadId: last }
  if (kind === 'blobs' && isDigest(last)) return { kind: 'blob', repository, digest: last }
  if (kind === 'manifests' && isReference(last)) return { kind: 'manifest', repository, reference: last }
  if (kind === 'referrers' && isDigest(last)) return { kind: 'referrers', repository, digest: last }
  return kind === 'tags' && last === 'list' ? { kind: 'tags', repository } : undefined
}
