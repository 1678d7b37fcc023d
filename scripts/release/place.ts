import { resolve } from 'node:path'
import { ownRegistry } from '@platform/cli/author/runtime'
import { readSigningKey } from '@platform/cli/author/keys'
import { openRemote } from '@platform/cli/author/remote'
import { CliError } from '@platform/cli/exit'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseRepository } from '@platform/local/release-settings'
import type { Options } from './options.ts'
import type { Repository } from './publish.ts'

/** The key (PEM) to sign with: of a file, or that of the platform on this machine. Throws `Failure`. */
export async function signingKey({ key }: Options): Promise<string> {
  if (key !== undefined) return readSigningKey(key)
  const folder = resolve(process.env['PLAT_DATA_DIR'] || '.platform')
  return readReleaseSigningKey(folder).catch((cause: unknown) => {
    const advice = 'Give --key FILE; npx plat module key NAME makes a key pair.'
    throw new CliError('usage', `No platform has made a key in ${folder} to sign with. ${advice}`, cause)
  })
}

/** The repository to push to, opened with the credentials that there are. Throws `Failure`. */
export async function releaseRepositoryFor({ source }: Options): Promise<Repository> {
  const reference = source || process.env['PLAT_RELEASE_SOURCE'] || (await ownReference())
  const { client, repository } = openRemote(reference)
  return { client, name: repository }
}

async function ownReference(): Promise<string> {
  const own = await ownRegistry()
  if (own !== undefined) return `${own.host}/${releaseRepository}`
  throw new CliError('usage', 'No platform runs here. Start it with npm start, or give --source registry/repository.')
}
