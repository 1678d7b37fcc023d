import { registryClient, type RegistryClient } from '@platform/oci/client'
import { transportWith } from '@platform/oci/plain-transport'
import { type ImageReference, parseReference, targetOf } from '@platform/oci/reference'
import { agentFor } from '@platform/relay/proxy'
import { CliError } from '../exit.ts'
import { credentialsFor } from './credentials.ts'

const transport = transportWith((url) => agentFor(url, { keepAlive: false }))

export interface Remote {
  client: RegistryClient
  repository: string
  /** Digest or tag of the image. */
  target: string
}

/** Parses an image reference. Throws `CliError` if it is invalid. */
export function referenceOf(text: string): ImageReference {
  const reference = parseReference(text)
  if (reference !== undefined) return reference
  throw new CliError(
    'usage',
    `${text} is not an image reference with a registry, such as 127.0.0.1:8081/modules/hello:1.0.0.`,
  )
}

/**
 * Opens the registry of a reference. The credentials of the environment are used only if the command targets this
 * registry (`isTarget`).
 */
export function openRemote(reference: string, { isTarget = true }: { isTarget?: boolean } = {}): Remote {
  const parsed = referenceOf(reference)
  const { registry, repository } = parsed
  const credentials = () => credentialsFor(registry, isTarget)
  return {
    client: registryClient(registry, { transport, credentials }),
    repository,
    target: targetOf(parsed),
  }
}

export const formatTarget = ({ client, repository, target }: Remote): string =>
  `${client.registry}/${repository}${target.includes(':') ? '@' : ':'}${target}`
