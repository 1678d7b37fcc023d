import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { CliError } from '@platform/cli/exit'
import { root } from '../source.ts'

const run = promisify(execFile)

const git = async (...args: string[]): Promise<string | undefined> =>
  run('git', args, { cwd: root }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )

export interface Commit {
  /** Short hash; absent without git. */
  name?: string
  /** The whole hash; absent without git. */
  id?: string
  /** Whether there are uncommitted changes. */
  isChanged: boolean
  /** ISO 8601: time of the commit, or `SOURCE_DATE_EPOCH` if set. */
  createdAt: string
}

/** Returns the current commit. Throws `CliError` if neither git nor `SOURCE_DATE_EPOCH` gives a valid time. */
export async function readCurrentCommit(environment: NodeJS.ProcessEnv = process.env): Promise<Commit> {
  const epoch = environment['SOURCE_DATE_EPOCH'] || (await git('log', '-1', '--format=%ct'))
  if (epoch === undefined || !/^\d{1,11}$/.test(epoch)) {
    throw new CliError('usage', 'SOURCE_DATE_EPOCH must be the time of the release in seconds since 1970.')
  }
  const [name, id, changes] = await Promise.all([
    git('rev-parse', '--short', 'HEAD'),
    git('rev-parse', 'HEAD'),
    git('status', '--porcelain'),
  ])
  return {
    ...(name !== undefined && { name }),
    ...(id !== undefined && { id }),
    isChanged: Boolean(changes),
    createdAt: new Date(Number(epoch) * 1000).toISOString(),
  }
}
