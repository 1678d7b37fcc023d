import type { Command } from 'commander'
import { ApiRejection, unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { connect, connectToFollow } from '../connect.ts'
import { getJob } from '../jobs/job.ts'
import { followOperation } from '../jobs/operation.ts'
import { confirm } from '../print/ask.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say } from '../print/write.ts'
import { addCommand } from './add-command.ts'

interface UpdateOptions extends PrintOptions {
  yes?: true
  wait: boolean
}

export function addUpdateCommands(program: Command): void {
  const update = program.command('update').description('updates of the platform')
  addCommand(update, 'check', 'check for updates', { checkForUpdate: 'plat update check' }).action(check)
  addCommand(update, 'apply [version]', 'update the platform to a version (default: the newest) and wait', {
    applyUpdate: ['plat update apply 1.4.0', 'plat update apply --yes'],
  })
    .option('--force', 'even if jobs are running')
    .option('--yes', 'skip the confirmation')
    .option('--no-wait', 'return immediately; see plat job get')
    .action(apply)
  addCommand(update, 'rollback', 'roll back to the previous version and wait', ['plat update rollback --yes'])
    .option('--force', 'even if jobs are running')
    .option('--yes', 'skip the confirmation')
    .option('--no-wait', 'return immediately; see plat job get')
    .action(rollback)
}

const readCheck = (api: Api) => unwrap(api.GET('/api/v1/platform/updates/check'))

async function check({ json }: PrintOptions): Promise<void> {
  const updateCheck = await readCheck(connect())
  await showOne({ ...(json && { json }) }, updateCheck)
  if (json) return
  const { updateAvailable, latestVersion, jobId } = updateCheck
  if (jobId !== undefined) say(`An update is running. See: plat job get ${cellOf(jobId)}`)
  else if (updateAvailable) say(`Next: plat update apply ${cellOf(latestVersion)}`)
}

async function apply(version: string | undefined, options: UpdateOptions & { force?: true }): Promise<void> {
  const api = connectToFollow()
  const updateCheck = await readCheck(api)
  const { currentVersion, latestVersion, updateAvailable } = updateCheck
  if (version === undefined && !updateAvailable) {
    if (options.json) return showOne({ json: options.json }, updateCheck)
    for (const { version, reason } of updateCheck.refused) say(`${cellOf(version)} cannot be applied: ${reason}`)
    return say(`${cellOf(currentVersion)} is up to date.`)
  }
  const targetVersion = version ?? latestVersion
  await confirm(
    `Update the platform from ${cellOf(currentVersion)} to ${cellOf(targetVersion)}?`,
    confirmOptions(options),
  )
  await follow(api, { action: 'apply', targetVersion, ...forceOption(options) }, options)
}

async function rollback(options: UpdateOptions & { force?: true }): Promise<void> {
  const api = connectToFollow()
  const { currentVersion, previousVersion } = await readCheck(api)
  const target = previousVersion === undefined ? 'the previous version' : cellOf(previousVersion)
  await confirm(`Roll back the platform from ${cellOf(currentVersion)} to ${target}?`, confirmOptions(options))
  // The request names the version, so that a retry cannot roll back further.
  const selection = previousVersion === undefined ? {} : { targetVersion: previousVersion }
  await follow(api, { action: 'rollback', ...selection, ...forceOption(options) }, options)
}

const confirmOptions = ({ yes }: UpdateOptions) => ({ ...(yes && { yes }) })
const forceOption = ({ force }: { force?: true }) => ({ ...(force && { force }) })

async function follow(api: Api, body: Schemas['UpdateRequest'], { wait, json }: UpdateOptions): Promise<void> {
  const printOptions = { ...(json && { json }) }
  const jobId = await requestUpdate(api, body)
  if (jobId === undefined) {
    const { action, targetVersion = '' } = body
    if (!json) say(`${cellOf(targetVersion)} is already active.`)
    return showOne(printOptions, { action, targetVersion, status: 'Completed' })
  }
  if (!wait) return showOne(printOptions, { ...body, jobId, status: 'InProgress' })
  process.exitCode = await followOperation(api, jobId, printOptions)
}

// Requests an update and returns its job id, or undefined if the version is already active. A rejection may follow an
// attempt that succeeded but whose response was lost.
async function requestUpdate(api: Api, body: Schemas['UpdateRequest']): Promise<string | undefined> {
  try {
    return (await unwrap(api.PUT('/api/v1/platform/updates/apply', { body }))).jobId
  } catch (error) {
    if (!(error instanceof ApiRejection) || body.targetVersion === undefined) throw error
    const { jobId, currentVersion } = await readCheck(api)
    if (jobId === undefined && currentVersion === body.targetVersion) return undefined
    if (jobId === undefined || !(await isSameUpdate(api, jobId, body))) throw error
    say(`Already running: ${cellOf(jobId)}.`)
    return jobId
  }
}

async function isSameUpdate(
  api: Api,
  jobId: string,
  { action, targetVersion }: Schemas['UpdateRequest'],
): Promise<boolean> {
  const { payload } = await getJob(api, jobId)
  return payload['action'] === action && payload['targetVersion'] === targetVersion
}
