import { chown, rm, stat, writeFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
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
import {
  type Command,
  imageVariables,
  instanceSocket,
  type Launch,
  type Launcher,
  systemPath,
  type UnpackedImage,
} from './launcher.ts'
import { nodeStartOf, pathIn, startOf, workingDirectory } from './node-command.ts'
import { type BundledNode } from './bundled-node.ts'

/** The settings for containers. */
export interface ContainerSettings extends MachineCapabilities {
  /** Absolute path of runc. */
  runc: string
  /** Folder for runc's state of running containers. */
  stateFolder: string
  node: BundledNode
}

/** User id of instances if the image sets none: an id that no machine assigns to a person. */
const unprivilegedUserId = 65_532

/** Runs images as runc containers. */
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
    ...imageVariables(image),
    ...protocol,
    [environmentNames.socket]: posix.join(containerSocketFolder, instanceSocket),
  }
  const program = await programOf(image, env.PATH, settings.node)
  const userId = settings.isRootless ? 0 : userOf(image)
  if (!settings.isRootless) await chown(socketFolder, userId, userId)
  const { root } = image
  const options = { name, root, cwd: workingDirectory(image), env, userId, socketFolder, ...program }
  return runContainer(folder, options, settings)
}

/** The command that runs a container, with its cleanup and the action once it listens. */
export async function runContainer(
  folder: string,
  options: ContainerOptions,
  settings: ContainerSettings,
): Promise<Command> {
  const configuration = join(folder, 'config.json')
  await writeFile(configuration, JSON.stringify(containerSpec(options, settings)), { mode: 0o600 })
  const runc = [settings.runc, '--root', settings.stateFolder]
  return {
    args: [...runc, 'run', '--bundle', folder, options.name],
    // runc looks for helper programs; the module's variables are in the configuration.
    env: { PATH: systemPath },
    cwd: folder,
    cleanUp: [...runc, 'delete', '--force', options.name],
    // The configuration contains the token.
    onListening: () => rm(configuration),
  }
}

/** The image's own program, or the platform's Node if the image starts Node without containing it. */
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
      (current) => current.isFile() && (current.mode & 0o111) !== 0,
      () => false,
    )
    if (isExecutable) return true
  }
  return false
}

/** The numeric user id of the image; user names and root yield the default user. */
function userOf({ config }: UnpackedImage): number {
  const id = /^\d{1,9}(?=:|$)/.exec(config.User ?? '')?.[0]
  return Number(id ?? 0) || unprivilegedUserId
}
