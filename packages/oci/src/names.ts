import { isDigest } from './digest.ts'
import { RegistryError } from './error.ts'

/** What may become part of an address. Some of it comes from registries, so that it is looked at wherever it is used. */

const part = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
const repositoryName = new RegExp(`^${part}(?:/${part})*$`)

/** Whether a text is the name of a repository, of at most 255 characters. */
export const isRepository = (text: string): boolean => text.length <= 255 && repositoryName.test(text)

export const isTag = (text: string): boolean => /^\w[\w.-]{0,127}$/.test(text)

const invalid = (what: string) => new RegistryError('invalid', `${what} Correct it, and ask again.`)

/** Refuses what is no name of a repository. */
export function checkRepository(repository: string): string {
  if (!isRepository(repository)) throw invalid('A repository was asked for by what cannot be its name.')
  return repository
}

/** Refuses what is neither a tag nor a digest. */
export function checkReference(reference: string): string {
  if (!isTag(reference) && !isDigest(reference))
    throw invalid('A manifest was asked for by neither a tag nor a digest.')
  return reference
}

/** Refuses what is no digest. */
export function checkDigest(digest: string): string {
  if (!isDigest(digest)) throw invalid('Content was asked for by what is not a SHA-256 digest.')
  return digest
}

/** The right to do something with a repository, as token servers name it. */
export const scopeOf = (repository: string, actions: 'pull' | 'pull,push' | 'delete'): string =>
  `repository:${repository}:${actions}`
