import { execFile } from 'node:child_process'
import { basename, posix, join } from 'node:path'
import { promisify } from 'node:util'
import {
  systemPath,
  type Command,
  imageVariablesOf,
  moduleUserId,
  instanceSocketName,
  type Launch,
  type Launcher,
  type UnpackedImage,
} from './launcher.ts'
import { chown, rm, stat, writeFile } from 'node:fs/promises'
import { environmentNames } from '@platform/modules/protocol'
import {
  type MachineCapabilities,
  type ContainerOptions,
  containerSocketFolder,
  containerSpec,
  maxProcesses,
  memoryMegabytes,
  temporaryMegabytes,
} from './container-spec.ts'
import { nodeStartOf, pathIn, startOf, workingDirectoryOf } from './node-command.ts'

/** The platform's own Node for images without one: it needs no files of the image. */
export interface BundledNode {
  command: readonly string[]
  files: Readonly<Record<string, string>>
}

const nodeFolder = '/run/node'

/**
 * Returns the running Node with its libraries and their loader, for a separate folder of a container: they neither
 * conflict with the image's libraries nor need them. Throws if `ldd` does not list the loader.
 */
export async function bundledNode(): Promise<BundledNode> {
  const { stdout } = await promisify(execFile)('ldd', [process.execPath], { env: { PATH: systemPath } })
  const libraries = [...stdout.matchAll(/^\s*(?:(\S+) => )?(\/\S+) \(0x/gm)]
  // `ldd` lists the loader by its path alone, or together with the path that it resolves to.
  const loader = libraries.find(([, name = '/', path = '']) => name.startsWith('/') && /\/ld[^/]*\.so/.test(path))?.[2]
  if (loader === undefined) throw new Error(`The libraries of ${process.execPath} are not known.`)
  const containerPathOf = (path: string) => posix.join(nodeFolder, basename(path))
  const files = libraries.map(([, , path = '']) => [containerPathOf(path), path])
  return {
    command: [containerPathOf(loader), '--library-path', nodeFolder, containerPathOf('node')],
    files: { ...Object.fromEntries(files), [containerPathOf('node')]: process.execPath },
  }
}

export interface ContainerSettings extends MachineCapabilities {
  runc: string
  stateFolder: string
  node: BundledNode
}

export const containerLauncher = (settings: ContainerSettings): Launcher => ({
  kind: 'container',
  isolation: isolationOf(settings),
  prepare: (launch) => prepare(launch, settings),
})

const isolationOf = ({ isRootless, hasLimits }: MachineCapabilities): string =>
  [
    'Container of runc: own processes, no network, image read-only, no capabilities',
    `${temporaryMegabytes} MB of temporary files`,
    hasLimits ? `${memoryMegabytes} MB of memory, ${maxProcesses} processes` : 'memory and processes without limits',
    ...(isRootless ? ["shares the platform's user"] : []),
  ].join('; ')

async function prepare(launch: Launch, settings: ContainerSettings): Promise<Command> {
  const { name, folder, socketFolder, image, protocol } = launch
  const env = {
    PATH: systemPath,
    ...imageVariablesOf(image),
    ...protocol,
    [environmentNames.socket]: posix.join(containerSocketFolder, instanceSocketName),
  }
  const program = await programOf(image, env.PATH, settings.node)
  const userId = settings.isRootless ? 0 : userOf(image)
  if (!settings.isRootless) await chown(socketFolder, userId, userId)
  const { root } = image
  const options = { name, root, cwd: workingDirectoryOf(image), env, userId, socketFolder, ...program }
  return runContainer(folder, options, settings)
}

export async function runContainer(
  folder: string,
  options: ContainerOptions,
  settings: ContainerSettings,
): Promise<Command> {
  const configurationPath = join(folder, 'config.json')
  await writeFile(configurationPath, JSON.stringify(containerSpec(options, settings)), { mode: 0o600 })
  const runc = [settings.runc, '--root', settings.stateFolder]
  return {
    args: [...runc, 'run', '--bundle', folder, options.name],
    // runc looks for helper programs; the module's variables are in the configuration.
    env: { PATH: systemPath },
    cwd: folder,
    cleanUpArgs: [...runc, 'delete', '--force', options.name],
    // The configuration contains the token, so it is deleted as soon as the module has started.
    onListening: () => rm(configurationPath),
  }
}

/** Returns the image's own program, or the platform's Node if the image starts Node without containing it. */
async function programOf(
  image: UnpackedImage,
  path: string,
  { command, files }: BundledNode,
): Promise<Pick<ContainerOptions, 'args' | 'files'>> {
  const start = nodeStartOf(image)
  const usesBundledNode = start !== undefined && !(await hasProgram(image, path, start.program))
  return usesBundledNode ? { args: [...command, ...start.args], files } : { args: startOf(image), files: {} }
}

async function hasProgram(image: UnpackedImage, path: string, program: string): Promise<boolean> {
  const paths = program.includes('/') ? [program] : path.split(':').map((folder) => posix.join('/', folder, program))
  for (const path of paths) {
    const isExecutable = await stat(pathIn(image, path)).then(
      (stats) => stats.isFile() && (stats.mode & 0o111) !== 0,
      () => false,
    )
    if (isExecutable) return true
  }
  return false
}

/** Returns the numeric user id of the image, or the default user if the image specifies a name, root or no user. */
function userOf({ config }: UnpackedImage): number {
  const id = /^\d{1,9}(?=:|$)/.exec(config.User ?? '')?.[0]
  return Number(id ?? 0) || moduleUserId
}
