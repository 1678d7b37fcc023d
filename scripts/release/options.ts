import { parseArgs } from 'node:util'
import { version } from '@platform/contract/manifest'
import { CliError, messageOf } from '@platform/cli/exit'
import { parseReleaseRepository } from '@platform/core/lib/settings/release-source'
import { resolveFromCaller } from '@platform/local/command-line'
import gte from 'semver/functions/gte.js'
import valid from 'semver/functions/valid.js'
import * as z from 'zod'

/** Options of `npm run release`; paths are absolute. */
export interface Options {
  version: string
  releaseNotesUrl: string
  minFrom?: string
  /** `registry/repository` to push to; default: the setting, or the registry of the local platform. */
  source?: string
  /** Private key file; default: the key of the local platform. */
  key?: string
  /** Folder to write to instead of a registry. */
  output?: string
}

export const usage = `npm run release -- --version X [options]

  --version X         version of the release (SemVer); a version is released once
  --notes-url URL     page of the release notes
  --min-from X        the oldest version that may be updated to this one
  --source REPOSITORY registry/repository to push to; default: PLAT_RELEASE_SOURCE, or the registry of the local platform
  --key FILE          private key (PEM) to sign with; default: the key of the local platform
  --output FOLDER     write an OCI image layout to a folder instead, for transport without a network

Environment: PLAT_DATA_DIR, PLAT_RELEASE_SOURCE, PLAT_REGISTRY_USERNAME and PLAT_REGISTRY_PASSWORD, and
SOURCE_DATE_EPOCH (creation time of the release; default: the time of the commit).`

const path = z.string().min(1).transform(resolveFromCaller)

/** Returns false if either text is not a version, which is reported separately. */
const isNewerOrSame = (version: string, oldVersion: string): boolean =>
  valid(version) !== null && valid(oldVersion) !== null && gte(version, oldVersion)

const Options = z
  .object({
    version: version.refine((text) => text.length <= 128, 'must have at most 128 characters'),
    'notes-url': z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).max(2000),
    'min-from': version.optional(),
    source: z
      .string()
      .refine((text) => parseReleaseRepository(text) !== undefined, 'must be registry/repository, without a tag')
      .optional(),
    key: path.optional(),
    output: path.optional(),
  })
  .refine(({ source, output }) => source === undefined || output === undefined, {
    path: ['output'],
    error: 'writes to a folder, and --source pushes to a registry: use one of them',
  })
  .refine(({ version: own, 'min-from': from }) => from === undefined || !isNewerOrSame(from, own), {
    path: ['min-from'],
    error: 'must be older than --version',
  })

const text = { type: 'string' } as const

/** Parses the command line. Throws `CliError` with one line for each invalid option. */
export function parseOptions(args: readonly string[]): Options {
  const parsed = Options.safeParse(valuesOf(args))
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path: [name], message }) => `--${String(name)}: ${message}`)
    throw new CliError('usage', `${lines.join('\n')}\n\n${usage}`)
  }
  const { 'notes-url': releaseNotesUrl, 'min-from': minFrom, source, key, output } = parsed.data
  return {
    version: parsed.data.version,
    releaseNotesUrl,
    ...(minFrom !== undefined && { minFrom }),
    ...(source !== undefined && { source }),
    ...(key !== undefined && { key }),
    ...(output !== undefined && { output }),
  }
}

function valuesOf(args: readonly string[]): Record<string, unknown> {
  const options = { version: text, 'notes-url': text, 'min-from': text, source: text, key: text, output: text }
  try {
    return parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    throw new CliError('usage', `${messageOf(error)}\n\n${usage}`, error)
  }
}
