import { registryClient, type RegistryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { type ImageReference, parseReference, targetOf } from '@platform/oci/reference'
import { CliError } from '../exit.ts'
import { credentialsFor } from './credentials.ts'

/** A repository of a registry, and what of it a reference names. */
export interface Remote {
  client: RegistryClient
  repository: string
  /** A digest or a tag. */
  target: string
}

/** The parts of a reference. Throws `Failure` for what is none. */
export function referenceOf(text: string): ImageReference {
  const reference = parseReference(text)
  if (reference !== undefined) return reference
  throw new CliError('usage', `${text} names no image with its registry, as 127.0.0.1:8081/modules/hello:1.0.0 does.`)
}

/** Opens the registry that a reference names; `isMeant`: it is one that the command is about, not one it merely reads. */
export function openRemote(reference: string, { isMeant = true }: { isMeant?: boolean } = {}): Remote {
  const parsed = referenceOf(reference)
  const { registry, repository } = parsed
  const credentials = () => credentialsFor(registry, isMeant)
  return {
    client: registryClient(registry, { transport: plainTransport, credentials }),
    repository,
    target: targetOf(parsed),
  }
}

/** What a remote is of, for people. */
export const formatTarget = ({ client, repository, target }: Remote): string =>
  `${client.registry}/${repository}${target.includes(':') ? '@' : ':'}${target}`
