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

/** What a release is made of. */
export interface Commit {
  /** Short; absent where there is no git. */
  name?: string
  /** There is more in the folder than in the commit. */
  isChanged: boolean
  /** ISO 8601: that of the commit, or `SOURCE_DATE_EPOCH` where it is set. */
  createdAt: string
}

/** The commit of the checkout. Throws `Failure` where nothing tells a time. */
export async function currentCommit(environment: NodeJS.ProcessEnv = process.env): Promise<Commit> {
  const epoch = environment['SOURCE_DATE_EPOCH'] || (await git('log', '-1', '--format=%ct'))
  if (epoch === undefined || !/^\d{1,11}$/.test(epoch)) {
    throw new CliError('usage', 'SOURCE_DATE_EPOCH must say the time of the release, in seconds since 1970.')
  }
  const [name, changes] = await Promise.all([git('rev-parse', '--short', 'HEAD'), git('status', '--porcelain')])
  return {
    ...(name !== undefined && { name }),
    isChanged: Boolean(changes),
    createdAt: new Date(Number(epoch) * 1000).toISOString(),
  }
}
