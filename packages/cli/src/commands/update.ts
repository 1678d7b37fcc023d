import type { Command } from 'commander'
import { answer, isRefusal } from '../api/answer.ts'
import type { Api, Schemas } from '../api/client.ts'
import { connect, connectToFollow } from '../connect.ts'
import { getJob } from '../jobs/job.ts'
import { followOperation } from '../jobs/operation.ts'
import { confirm } from '../print/ask.ts'
import { type Shown, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say } from '../print/write.ts'
import { leaf } from './leaf.ts'

interface Agreed extends Shown {
  yes?: true
  wait: boolean
}

/** `plat update …`: releases of the platform itself. */
export function addUpdateCommands(program: Command): void {
  const update = program.command('update').description('releases of the platform itself')
  leaf(update, 'check', 'look for a newer release', ['plat update check']).action(check)
  leaf(update, 'apply [version]', 'update the platform, to the newest release if none is named, and wait for it', [
    'plat update apply',
    'plat update apply 1.4.0 --yes',
  ])
    .option('--force', 'although jobs are running')
    .option('--yes', 'do not ask')
    .option('--no-wait', 'leave at once; plat job get shows how it goes')
    .action(apply)
  leaf(update, 'rollback', 'go back to the version before, and wait for it', ['plat update rollback --yes'])
    .option('--force', 'although jobs are running')
    .option('--yes', 'do not ask')
    .option('--no-wait', 'leave at once; plat job get shows how it goes')
    .action(rollback)
}

const readCheck = (api: Api) => answer(api.GET('/api/v1/platform/updates/check'))

async function check({ json }: Shown): Promise<void> {
  const found = await readCheck(connect())
  await showOne({ ...(json && { json }) }, found)
  if (json) return
  const { updateAvailable, latestVersion, jobId } = found
  if (jobId !== undefined) say(`An update is under way. See: plat job get ${cellOf(jobId)}`)
  else if (updateAvailable) say(`Next: plat update apply ${cellOf(latestVersion)}`)
}

async function apply(wanted: string | undefined, options: Agreed & { force?: true }): Promise<void> {
  const api = connectToFollow()
  const found = await readCheck(api)
  const { currentVersion, latestVersion, updateAvailable } = found
  if (wanted === undefined && !updateAvailable) {
    if (options.json) return showOne({ json: options.json }, found)
    for (const { version, reason } of found.refused) say(`${cellOf(version)} cannot be applied: ${reason}`)
    return say(`${cellOf(currentVersion)} is the newest version that there is for this platform.`)
  }
  const targetVersion = wanted ?? latestVersion
  await confirm(`Update the platform from ${cellOf(currentVersion)} to ${cellOf(targetVersion)}?`, asked(options))
  await follow(api, { action: 'apply', targetVersion, ...forced(options) }, options)
}

async function rollback(options: Agreed & { force?: true }): Promise<void> {
  const api = connectToFollow()
  const { currentVersion, previousVersion } = await readCheck(api)
  const target = previousVersion === undefined ? 'the version before' : cellOf(previousVersion)
  await confirm(`Take the platform back from ${cellOf(currentVersion)} to ${target}?`, asked(options))
  await follow(api, { action: 'rollback', ...forced(options) }, options)
}

const asked = ({ yes }: Agreed) => ({ ...(yes && { yes }) })
const forced = ({ force }: { force?: true }) => ({ ...(force && { force }) })

async function follow(api: Api, body: Schemas['UpdateRequest'], { wait, json }: Agreed): Promise<void> {
  const accepted = await accept(api, body)
  const shown = { ...(json && { json }) }
  if (!wait) return showOne(shown, accepted)
  process.exitCode = await followOperation(api, accepted.jobId, shown)
}

/** An update that does the same already may be this very one, whose acceptance did not arrive. */
async function accept(api: Api, body: Schemas['UpdateRequest']): Promise<Schemas['UpdateAccepted']> {
  try {
    return await answer(api.PUT('/api/v1/platform/updates/apply', { body }))
  } catch (error) {
    if (!isRefusal(error, 'update_in_progress')) throw error
    const { jobId } = await readCheck(api)
    if (jobId === undefined) throw error
    const { action, targetVersion } = (await getJob(api, jobId)).payload
    const isThat = action === body.action && (body.targetVersion ?? targetVersion) === targetVersion
    if (!isThat || typeof targetVersion !== 'string') throw error
    say(`${cellOf(jobId)} is doing that already.`)
    return { jobId, action: body.action, targetVersion, status: 'InProgress' }
  }
}
