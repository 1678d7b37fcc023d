import { resolve } from 'node:path'
import { ownRegistry } from '@platform/cli/author/runtime'
import { readSigningKey } from '@platform/cli/author/keys'
import { openRemote } from '@platform/cli/author/remote'
import { CliError } from '@platform/cli/exit'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseRepository } from '@platform/local/release-settings'
import type { Options } from './options.ts'
import type { Repository } from './publish.ts'

/** Reads the signing key (PEM) from the given file or the data folder of the local platform. Throws `CliError`. */
export async function findSigningKey({ key }: Options): Promise<string> {
  if (key !== undefined) return readSigningKey(key)
  const folder = resolve(process.env['PLAT_DATA_DIR'] || '.platform')
  return readReleaseSigningKey(folder).catch((cause: unknown) => {
    const advice = 'Use --key FILE; npx plat module key NAME creates a key pair.'
    throw new CliError('usage', `No signing key in ${folder}: no platform has started there. ${advice}`, cause)
  })
}

/**
 * Returns the client and the name of the repository to push to. Throws `CliError` without a source and a running
 * platform.
 */
export async function releaseRepositoryFor({ source }: Options): Promise<Repository> {
  const reference = source || process.env['PLAT_RELEASE_SOURCE'] || (await ownReference())
  const { client, repository } = openRemote(reference)
  return { client, name: repository }
}

async function ownReference(): Promise<string> {
  const registry = await ownRegistry()
  if (registry !== undefined) return `${registry.host}/${releaseRepository}`
  throw new CliError(
    'usage',
    'No platform is running here. Start it with npm start, or use --source registry/repository.',
  )
}
