import { isDigest } from './digest.ts'
import { RegistryError } from './error.ts'

/** Validation of values that become part of a URL. Some come from registries, so every use validates them. */

const part = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
const repositoryName = new RegExp(`^${part}(?:/${part})*$`)

export const isRepository = (text: string): boolean => text.length <= 255 && repositoryName.test(text)

export const isTag = (text: string): boolean => /^\w[\w.-]{0,127}$/.test(text)

const createCheck =
  (isValid: (text: string) => boolean, message: string) =>
  (text: string): string => {
    if (!isValid(text)) throw new RegistryError('invalid', `${message} Correct it and retry.`)
    return text
  }

export const checkRepository = createCheck(isRepository, 'The repository name is invalid.')
export const checkDigest = createCheck(isDigest, 'The digest is not a SHA-256 digest.')
export const checkReference = createCheck(
  (text) => isTag(text) || isDigest(text),
  'The reference is neither a tag nor a digest.',
)

export const scopeOf = (repository: string, actions: 'pull' | 'pull,push' | 'delete'): string =>
  `repository:${repository}:${actions}`
