// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import { pushModule, type PushedModule } from './module-images.ts'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { rm } from 'node:fs/promises'
import { projectOrganisation } from '@platform/core/background/projections'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { get, query, remove } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { installFromImage } from '@platform/core/modules/install'
import { uninstall } from '@platform/core/modules/uninstall'
import { registryClientFor } from '@platform/core/modules/registries'
import { runModuleOperation } from './module-operations.ts'
import { findModule } from '@platform/worker/modules/records'
import { fetchImage } from '@platform/worker/runtimes/fetch-image'
import { Images } from '@platform/worker/runtimes/images'
import { openLocalRuntime } from '@platform/worker/runtimes/local-runtime'
import { processLauncher } from '@platform/worker/runtimes/process'
import { restartDelayMs } from '@platform/worker/runtimes/supervisor'
import { superviseModules, type SupervisedRuntime } from '@platform/worker/runtimes/supervised'
import { tokenOf } from '@platform/worker/runtimes/token'
import { afterAll, afterEach } from 'vitest'
import type { ModuleBehaviour } from './actor-module.ts'
import { isLong } from '../../support/long.ts'
import { newCaller } from '../../support/fixtures.ts'
import { readPendingRecords } from './outbox.ts'
import { newModuleId } from './modules.ts'

/** Modules as real images and processes, installed by the use cases of the API and their workers. */

/** A short name, because the length of socket paths is limited. */
const runFolder = mkdtempSync(join(tmpdir(), 'run-'))
export const output: string[] = []

const optionsOf = (name: string, images = 'images') => ({
  images: new Images(join(runFolder, images), (image, place) => fetchImage(registryClientFor, image, place)),
  runFolder: join(runFolder, name),
  tokenOf,
  onLog: (moduleId: string, line: string) => void output.push(`${moduleId} ${line}`),
  pauseMs: (crashes: number) => (isLong ? restartDelayMs(crashes) : 50),
})

/** Opens a separate runtime, as after a restart; by default with the same images. */
export const openRuntime = (name: string, images?: string): Promise<SupervisedRuntime> =>
  superviseModules({ launcher: processLauncher(), ...optionsOf(name, images) })

/** Opens a runtime for which `runc` does not work. */
export function openRuntimeWithoutContainers(name: string): Promise<SupervisedRuntime> {
  mkdirSync(join(runFolder, name))
  // This file has the path of the state folder of runc, which therefore cannot start.
  writeFileSync(join(runFolder, name, 'runc'), '')
  return openLocalRuntime({ mode: 'auto', ...optionsOf(name) })
}

export const runtime = await openRuntime('a')
export const pick = async () => runtime

afterAll(async () => {
  await runtime.close(0)
  await rm(runFolder, { recursive: true, force: true })
})

/** Modules belong to the whole platform, so each test starts without any. */
afterEach(async () => {
  for (const { deployment } of await runtime.list()) await runtime.remove(deployment, 0)
  await removeAll(keys.modules())
  await transact([remove(keys.moduleRoutes())])
  output.length = 0
})

async function requestModule(id: string, method: string, path: string, body?: object): Promise<any> {
  const record = await findModule(id)
  if (record?.deployment === undefined) throw new Error(`${id} is not running.`)
  const response = await runtime.request(
    record.deployment,
    { method, path: `/api/${id}/${path}`, ...(body && { body: Buffer.from(JSON.stringify(body)) }) },
    { timeoutMs: 5000, maxBytes: 1_000_000 },
  )
  return JSON.parse(Buffer.from(response.body).toString())
}

export const setBehaviour = (id: string, behaviour: ModuleBehaviour): Promise<void> =>
  requestModule(id, 'POST', 'be', behaviour)

export const readActorLog = (
  id: string,
): Promise<{ hooks: string[]; events: { id: string; type: string; subject: string }[]; jobs: string[] }> =>
  requestModule(id, 'GET', 'seen')

export async function requestInstall(caller: Caller, imageRef: string) {
  const { jobId } = await installFromImage(caller, { imageRef })
  return { organisationId: caller.organisationId, jobId }
}

export async function requestUninstall(caller: Caller, moduleId: string) {
  const { jobId } = await uninstall(caller, moduleId)
  return { organisationId: caller.organisationId, jobId }
}

export async function install(caller: Caller, module: PushedModule) {
  const { reference } = await pushModule(module)
  const accepted = await requestInstall(caller, reference)
  await runModuleOperation(accepted, pick)
  return Job.read(caller, accepted.jobId)
}

export async function storedTraces(id: string) {
  const deployments = (await runtime.list()).filter(({ deployment }) => deployment.moduleId === id)
  const routes = await get(keys.moduleRoutes())
  return {
    row: await findModule(id),
    claim: routes?.[`module:${id}`],
    health: await get(keys.moduleHealth(id)),
    events: (await query(keys.moduleEvents(id))).items.length,
    delivery: await get(keys.moduleDelivery(id)),
    deployments: deployments.map(({ deployment }) => deployment.id),
  }
}

export const noTraces = {
  row: undefined,
  claim: undefined,
  health: undefined,
  events: 0,
  delivery: undefined,
  deployments: [],
}

export async function takeEvents({ organisationId }: Caller): Promise<{ name: string; data: any; subject: string }[]> {
  const records = await readPendingRecords(organisationId)
  await projectOrganisation(organisationId)
  return records.flatMap(({ events }) => events)
}

export async function runningModule(module: Partial<PushedModule> = {}) {
  const [caller, id] = [await newCaller(undefined, 'PlatformAdmin'), module.id ?? newModuleId()]
  await install(caller, { ...module, id })
  await takeEvents(caller)
  return { caller, id }
}

export const takeEventData = async (caller: Caller): Promise<any[]> =>
  (await takeEvents(caller)).map(({ name, data }) => Object.assign({ name }, data))
