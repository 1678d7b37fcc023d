import { containerLauncher } from './container.ts'
import type { Launcher } from './launcher.ts'
import { RuntimeError } from './port.ts'
import { findModuleUser, processLauncher } from './process.ts'
import { tryContainers } from './runc.ts'
import { superviseModules, type SupervisedOptions, type SupervisedRuntime } from './supervised.ts'

export type LocalMode = 'auto' | 'process' | 'container'

export interface LocalOptions extends Omit<SupervisedOptions, 'launcher'> {
  /** `auto`: containers if a trial container runs, otherwise processes for modules that may run as a process. */
  mode: LocalMode
  /** The platform's own folders above the images and the run folder. */
  dataFolders?: readonly string[]
  /** Called with the reason if `auto` selects processes. */
  onFallback?: (reason: string) => void
}

export interface LocalRuntime extends SupervisedRuntime, Pick<Launcher, 'kind' | 'isolation'> {
  /** Whether modules that may not run as a process are refused, because containers are unavailable. */
  isFallback: boolean
}

/**
 * Runs modules on this machine, isolated as `mode` specifies. Throws in `container` mode if containers are unavailable.
 */
export async function openLocalRuntime(options: LocalOptions): Promise<LocalRuntime> {
  const { launcher, fallbackReason } = await launcherOf(options)
  const { kind, isolation } = launcher
  const runtime = await superviseModules({ ...options, launcher })
  if (fallbackReason === undefined) return { ...runtime, kind, isolation, isFallback: false }
  const deploy: SupervisedRuntime['deploy'] = async (spec) => {
    if (spec.mayRunAsProcess) return runtime.deploy(spec)
    throw new RuntimeError('refused', `This module requires a container. ${fallbackReason} ${isolationAdvice}`)
  }
  return { ...runtime, deploy, kind, isolation, isFallback: true }
}

const isolationAdvice =
  'Make runc work, or start the platform with PLAT_MODULE_ISOLATION=process and install the module again.'

async function launcherOf(options: LocalOptions): Promise<{ launcher: Launcher; fallbackReason?: string }> {
  const { mode, runFolder, dataFolders = [], onFallback = () => {} } = options
  const openProcesses = async () => processLauncher(await findModuleUser(runFolder, dataFolders))
  if (mode === 'process') return { launcher: await openProcesses() }
  try {
    return { launcher: containerLauncher(await tryContainers(runFolder)) }
  } catch (error) {
    if (mode === 'container') throw error
    const fallbackReason = (error instanceof Error ? error.message : String(error)).trim().replaceAll(/\s+/g, ' ')
    onFallback(fallbackReason)
    return { launcher: await openProcesses(), fallbackReason }
  }
}
