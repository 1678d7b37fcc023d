import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '@platform/contract/manifest'
import { CliError, messageOf } from '@platform/cli/exit'
import { parseReleaseRepository } from '@platform/core/lib/settings/release-source'
import gte from 'semver/functions/gte.js'
import valid from 'semver/functions/valid.js'
import * as z from 'zod'

/** What `npm run release` is told. Paths are absolute. */
export interface Options {
  version: string
  releaseNotesUrl?: string
  minFrom?: string
  /** `registry/repository` to push to; else the setting, or the registry of the platform on this machine. */
  source?: string
  /** File of the private key to sign with; else that of the platform on this machine. */
  key?: string
  /** Folder to write to, in the place of a registry. */
  output?: string
}

const usage = `npm run release -- --version X [options]

  --version X         version of the release (SemVer); a version is released once
  --notes-url URL     what is new, for people
  --min-from X        the oldest version that may be updated to this one
  --source REPOSITORY registry/repository to push to, if not PLAT_RELEASE_SOURCE or the registry of the platform here
  --key FILE          private key (PEM) to sign with, if not that of the platform here
  --output FOLDER     write an OCI image layout instead, to be carried where no network leads

Environment: PLAT_DATA_DIR, PLAT_RELEASE_SOURCE, PLAT_REGISTRY_USERNAME and PLAT_REGISTRY_PASSWORD, and
SOURCE_DATE_EPOCH, the time that the release says of itself, if not that of the commit.`

/** npm runs scripts in the project's folder, wherever it was called: what a person calls a file is meant from there. */
const path = z
  .string()
  .min(1)
  .transform((text) => resolve(process.env['INIT_CWD'] ?? '.', text))

/** What is no version is refused for that. */
const isNewerOrSame = (one: string, other: string): boolean =>
  valid(one) !== null && valid(other) !== null && gte(one, other)

const Options = z
  .object({
    version: version.refine((text) => text.length <= 128, 'must have at most 128 characters'),
    'notes-url': z
      .url({ protocol: /^https?$/, error: 'must be an http or https address' })
      .max(2000)
      .optional(),
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
    error: 'writes to a folder, and --source pushes to a registry: give one of them',
  })
  .refine(({ version: own, 'min-from': from }) => from === undefined || !isNewerOrSame(from, own), {
    path: ['min-from'],
    error: 'must be older than --version: else nobody could update',
  })

const text = { type: 'string' } as const

/** Reads the command line. Throws `Failure` with a line for everything that is wrong. */
export function parseOptions(args: readonly string[]): Options {
  const parsed = Options.safeParse(valuesOf(args))
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path: [name], message }) => `--${String(name)}: ${message}`)
    throw new CliError('usage', `${lines.join('\n')}\n\n${usage}`)
  }
  const { 'notes-url': releaseNotesUrl, 'min-from': minFrom, source, key, output } = parsed.data
  return {
    version: parsed.data.version,
    ...(releaseNotesUrl !== undefined && { releaseNotesUrl }),
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
