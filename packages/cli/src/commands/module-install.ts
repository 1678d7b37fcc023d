import type { Command } from 'commander'
import { isApiRejection, unwrap, unwrapOptional } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { connect, connectToFollow } from '../connect.ts'
import { CliError } from '../exit.ts'
import { followOperation } from '../jobs/operation.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say } from '../print/write.ts'
import { addCommand } from './add-command.ts'

interface WaitOptions extends PrintOptions {
  wait: boolean
}

interface InstallOptions {
  version?: string
  manifest?: string
}

interface EventOptions extends PrintOptions {
  events?: string
}

export function addInstallCommands(module: Command): void {
  addCommand(module, 'install <id|image>', 'install or upgrade a module and wait', {
    installModule: ['plat module install hello --version 1.4.0', 'plat module install hello'],
    installImage: 'plat module install registry.example.com/modules/hello:1.0.0',
  })
    .option('--version <version>', 'this release (default: the newest verified one)')
    .option('--manifest <url>', 'URL of module.json, if it is not in the image')
    .option('--accept-events', 'allow the events that the module declares, for your organisation')
    .option('--no-wait', 'return immediately; see plat job get')
    .action(install)
  addCommand(module, 'uninstall <id>', 'uninstall a module and wait', {
    uninstallModule: 'plat module uninstall hello',
  })
    .option('--no-wait', 'return immediately; see plat job get')
    .action(uninstall)
  addCommand(module, 'enable <id>', 'allow a module to receive events of your organisation', {
    setOrganisationModule: [
      'plat module enable hello',
      'plat module enable hello --events platform.cluster.status_changed',
    ],
  })
    .option('--events <types>', 'only these declared event types, comma-separated')
    .action((id: string, { events, ...shown }: EventOptions) =>
      setEvents(id, { enabled: true, ...(events !== undefined && { events: events.split(',') }) }, shown),
    )
  addCommand(module, 'disable <id>', 'stop events of your organisation to a module', [
    'plat module disable hello',
  ]).action((id: string, options: PrintOptions) => setEvents(id, { enabled: false }, options))
}

const putEvents = (api: Api, id: string, body: Schemas['OrganisationModuleChange']) =>
  unwrap(api.PUT('/api/v1/organisation/modules/{id}', { params: { path: { id } }, body }))

async function setEvents(id: string, body: Schemas['OrganisationModuleChange'], options: PrintOptions): Promise<void> {
  await showOne(options, await putEvents(connect(), id, body))
}

async function confirmEvents(api: Api, { moduleId, events }: Schemas['InstallAccepted'], isAccepted: boolean) {
  if (events.length === 0) return
  if (isAccepted) await putEvents(api, moduleId, { enabled: true, events })
  else say(`${moduleId} can receive ${events.join(', ')}. To allow it: plat module enable ${moduleId}`)
}

async function install(
  target: string,
  { version, manifest, acceptEvents = false, ...options }: WaitOptions & InstallOptions & { acceptEvents?: boolean },
): Promise<void> {
  const requestInstall = target.includes('/')
    ? installImage(target, { ...(version && { version }), ...(manifest && { manifest }) })
    : installFromCatalog(target, { ...(version && { version }), ...(manifest && { manifest }) })
  // Until the installation ends, the platform knows only the events of the installed version.
  if (acceptEvents && !options.wait)
    throw new CliError('usage', '--accept-events requires the end of the installation. Omit --no-wait.')
  const api = connectToFollow()
  const acceptedJob = await requestInstall(api)
  await follow(api, acceptedJob, options)
  if (!process.exitCode) await confirmEvents(api, acceptedJob, acceptEvents)
}

function installImage(imageRef: string, { version, manifest }: InstallOptions) {
  if (version !== undefined)
    throw new CliError('usage', '--version requires a module id; an image has its own version.')
  const body = { imageRef, ...(manifest !== undefined && { manifestUrl: manifest }) }
  return (api: Api) => unwrap(api.POST('/api/modules/install', { body }))
}

function installFromCatalog(id: string, { version, manifest }: InstallOptions) {
  if (manifest !== undefined)
    throw new CliError('usage', '--manifest requires an image, such as host/modules/hello:1.0.0.')
  const body = version === undefined ? {} : { version }
  return (api: Api) => unwrap(api.POST('/api/v1/modules/{id}/install', { params: { path: { id } }, body }))
}

async function uninstall(id: string, options: WaitOptions): Promise<void> {
  const api = connectToFollow()
  const acceptedJob = await acceptUninstall(api, id)
  if (acceptedJob === undefined) return showOne(options, { moduleId: id, status: 'Uninstalled' })
  await follow(api, acceptedJob, options)
}

// If the response to an earlier attempt was lost, the uninstallation may already be running; its job is then returned.
// Returns undefined if the uninstallation has ended.
async function acceptUninstall(api: Api, moduleId: string): Promise<Schemas['UninstallAccepted'] | undefined> {
  const params = { path: { id: moduleId } }
  try {
    return await unwrapOptional(api.DELETE('/api/v1/modules/{id}', { params }))
  } catch (error) {
    if (!isApiRejection(error, 'module_operation_in_progress')) throw error
    const foundModule = await unwrap(api.GET('/api/v1/modules/{id}', { params })).catch(undefinedIfNotFound)
    if (foundModule === undefined) return undefined
    const { state, jobId } = foundModule
    if (state !== 'Uninstalling' || jobId === undefined) throw error
    say(`Already running: ${cellOf(jobId)}.`)
    return { jobId, moduleId, status: state }
  }
}

function undefinedIfNotFound(error: unknown): undefined {
  if (!isApiRejection(error, 'module_not_found')) throw error
}

async function follow(api: Api, job: { jobId: string }, { wait, ...options }: WaitOptions): Promise<void> {
  if (!wait) return showOne(options, job)
  process.exitCode = await followOperation(api, job.jobId, options)
}
