import { execFile } from 'node:child_process'
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ContainerSettings, runContainer, bundledNode } from './container.ts'
import { containerSocketFolder } from './container-spec.ts'
import { emptyFolder, removeFolder, systemPath } from './launcher.ts'
import { spawnWithWatchdog } from './watchdog.ts'
import { captureOutput } from './output-capture.ts'

/** Determines whether this machine can run containers, by running one. */

const run = promisify(execFile)
const trialLimitMs = 10_000
const trialName = (runFolder: string) =>
  `platform-trial-${process.pid}-${Buffer.from(runFolder).toString('hex').slice(-12)}`

/**
 * Returns the container settings of this machine. Removes containers of an earlier process, then tries a container with
 * limits and one without. Throws with the reason if neither runs.
 */
export async function tryContainers(runFolder: string): Promise<ContainerSettings> {
  const runc = await findRunc()
  const stateFolder = join(runFolder, 'runc')
  await removeOrphans(runc, stateFolder)
  const isRootless = process.getuid?.() !== 0
  const commonSettings = { runc, stateFolder, isRootless, node: await bundledNode() }
  const limitedSettings = { ...commonSettings, hasLimits: true }
  const reason = await failureOfTrial(runFolder, limitedSettings)
  if (reason === undefined) return limitedSettings
  const unlimitedSettings = { ...commonSettings, hasLimits: false }
  const otherReason = await failureOfTrial(runFolder, unlimitedSettings)
  if (otherReason === undefined) return unlimitedSettings
  throw new Error(`A trial container did not run: ${otherReason}`)
}

async function findRunc(): Promise<string> {
  for (const folder of systemPath.split(':')) {
    const path = join(folder, 'runc')
    const isProgram = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isProgram) return path
  }
  throw new Error('runc is not installed.')
}

async function removeOrphans(runc: string, stateFolder: string): Promise<void> {
  const stateFolderStats = await stat(stateFolder).catch(() => undefined)
  if (stateFolderStats === undefined) return
  const { stdout } = await run(runc, ['--root', stateFolder, 'list', '--quiet'], { timeout: trialLimitMs })
  for (const name of stdout.split('\n').filter(Boolean)) {
    await run(runc, ['--root', stateFolder, 'delete', '--force', name], { timeout: trialLimitMs }).catch(
      () => undefined,
    )
  }
}

/** Returns the reason why a trial container does not run; undefined if it does. */
async function failureOfTrial(runFolder: string, settings: ContainerSettings): Promise<string | undefined> {
  const folder = join(runFolder, 'trial')
  const [root, socketFolder] = [join(folder, 'root'), join(folder, 's')]
  const script = `require('node:fs').writeFileSync('${containerSocketFolder}/ok', '')`
  try {
    await emptyFolder(folder)
    await mkdir(root)
    await mkdir(socketFolder, { mode: 0o777 })
    const options = {
      name: trialName(runFolder),
      root,
      args: [...settings.node.command, '-e', script],
      files: settings.node.files,
      cwd: '/',
      env: {},
      userId: 0,
      socketFolder,
    }
    return await runTrial(await runContainer(folder, options, settings), join(socketFolder, 'ok'))
  } finally {
    await removeFolder(folder)
  }
}

async function runTrial(
  command: Parameters<typeof spawnWithWatchdog>[0],
  markerFile: string,
): Promise<string | undefined> {
  const child = spawnWithWatchdog(command)
  const output = captureOutput([child.stdout, child.stderr], () => {})
  const timer = setTimeout(child.kill, trialLimitMs)
  await child.cleanedUp
  clearTimeout(timer)
  const hasRun = await access(markerFile).then(
    () => true,
    () => false,
  )
  return hasRun ? undefined : `${await child.exited} ${output.tail()}`.trim()
}
