import { containerLauncher } from './container.ts'
import { type Launcher } from './launcher.ts'
import { processLauncher } from './process.ts'
import { tryContainers } from './runc.ts'
import { superviseModules, type SupervisedOptions, type SupervisedRuntime } from './supervised.ts'

export type LocalMode = 'auto' | 'process' | 'container'

export interface LocalOptions extends Omit<SupervisedOptions, 'launcher'> {
  /** `auto`: containers if a trial container runs, otherwise processes. */
  mode: LocalMode
  /** Called with the reason if `auto` selects processes. */
  onFallback?: (reason: string) => void
}

/** Runs modules on this machine, isolated as well as possible. Throws if `container` mode is unavailable. */
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
