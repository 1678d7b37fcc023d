import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { environmentNames as names } from '@platform/modules/protocol'
import { waitFor } from './wait-for.ts'
import { processesWith, readProcesses } from './local-runtime.ts'
import type { PlatformProcess } from './platform.ts'

export interface ModuleProcess {
  processId: number
  deploymentId: string
}

export async function processesOf(organisationId: string, moduleId: string): Promise<ModuleProcess[]> {
  return (await readProcesses('environ')).flatMap(({ id, text }) => {
    const variables = new Map(text.split('\0').map((each) => each.split('=', 2) as [string, string]))
    const isOfModule = variables.get(names.organisation) === organisationId && variables.get(names.module) === moduleId
    return isOfModule ? [{ processId: id, deploymentId: variables.get(names.deployment) ?? '' }] : []
  })
}

async function remainingOf({ dataDir }: Pick<PlatformProcess, 'dataDir'>): Promise<string[]> {
  const processes = await processesWith(`${dataDir}/`)
  const folders = await Promise.all(['run', join('run', 'runc'), 'images'].map((name) => contentOf(dataDir, name)))
  // The state folder of runc remains. Its entries, one for each container, count.
  return [...processes.map((id) => `process ${id}`), ...folders.flat()].filter((each) => each !== join('run', 'runc'))
}

const contentOf = async (dataDir: string, name: string): Promise<string[]> =>
  (await readdir(join(dataDir, 'modules', name)).catch(() => [])).map((entry) => join(name, entry))

export async function waitForModuleCleanup(platform: Pick<PlatformProcess, 'dataDir'>): Promise<void> {
  let remainingTraces: string[] = []
  const isClean = async () => (remainingTraces = await remainingOf(platform)).length === 0
  await waitFor('module files and processes to be removed', isClean).catch((cause: unknown) => {
    throw new Error(`Not removed: ${remainingTraces.join(', ')}`, { cause })
  })
}
