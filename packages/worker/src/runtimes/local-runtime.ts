import { containerLauncher } from './container.ts'
import { type Launcher } from './launcher.ts'
import { processLauncher } from './process.ts'
import { tryContainers } from './runc.ts'
import { superviseModules, type SupervisedOptions, type SupervisedRuntime } from './supervised.ts'

export type LocalMode = 'auto' | 'process' | 'container'

export interface LocalOptions extends Omit<SupervisedOptions, 'launcher'> {
  /** `auto`: containers where a trial start of one works, else processes. */
  mode: LocalMode
  /** Hears why `auto` has chosen processes. */
  onFallback?: (reason: string) => void
}

/** Runs modules on this machine (D42), kept apart as well as it can. Rejects where `container` is asked for and not to be had. */
export async function openLocalRuntime(
  options: LocalOptions,
): Promise<SupervisedRuntime & Pick<Launcher, 'kind' | 'isolation'>> {
  const launcher = await launcherOf(options)
  const { kind, isolation } = launcher
  return { ...(await superviseModules({ ...options, launcher })), kind, isolation }
}

async function launcherOf({ mode, runFolder, onFallback = () => {} }: LocalOptions): Promise<Launcher> {
  if (mode === 'process') return processLauncher
  try {
    return containerLauncher(await tryContainers(runFolder))
  } catch (error) {
    if (mode === 'container') throw error
    onFallback(error instanceof Error ? error.message : String(error))
    return processLauncher
  }
}
