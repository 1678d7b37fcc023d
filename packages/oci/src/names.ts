import { isDigest } from './digest.ts'
import { RegistryError } from './error.ts'

/** Validation of values that become part of a URL. Some come from registries, so every use validates them. */

const part = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
const repositoryName = new RegExp(`^${part}(?:/${part})*$`)

/** Whether a text is a repository name of at most 255 characters. */
export const isRepository = (text: string): boolean => text.length <= 255 && repositoryName.test(text)

export const isTag = (text: string): boolean => /^\w[\w.-]{0,127}$/.test(text)

const invalid = (what: string) => new RegistryError('invalid', `${what} Correct it and retry.`)

/** Throws `RegistryError` if the text is not a repository name. */
export function checkRepository(repository: string): string {
  if (!isRepository(repository)) throw invalid('The repository name is invalid.')
  return repository
}

/** Throws `RegistryError` if the text is neither a tag nor a digest. */
export function checkReference(reference: string): string {
  if (!isTag(reference) && !isDigest(reference)) throw invalid('The reference is neither a tag nor a digest.')
  return reference
}

/** Throws `RegistryError` if the text is not a digest. */
export function checkDigest(digest: string): string {
  if (!isDigest(digest)) throw invalid('The digest is not a SHA-256 digest.')
  return digest
}

/** The scope of a repository, as token servers name it. */
export const scopeOf = (repository: string, actions: 'pull' | 'pull,push' | 'delete'): string =>
  `repository:${repository}:${actions}`
