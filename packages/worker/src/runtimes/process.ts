import { chown, mkdir, realpath, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { environmentNames } from '@platform/modules/protocol'
import {
  allowTraversal,
  type Command,
  emptyFolder,
  imageVariablesOf,
  instanceSocketName,
  type Launch,
  type Launcher,
  moduleUserId,
  removeFolder,
  type UnpackedImage,
} from './launcher.ts'
import { nodeStartOf, pathIn, startOf, workingDirectoryOf } from './node-command.ts'
import { captureOutput } from './output-capture.ts'
import { RuntimeError } from './port.ts'
import { spawnWithWatchdog } from './watchdog.ts'

/** Heap for JavaScript objects: the old generation, and three semi-spaces for new objects. It excludes buffers. */
const oldSpaceMegabytes = 208
const semiSpaceMegabytes = 16
const heapMegabytes = oldSpaceMegabytes + 3 * semiSpaceMegabytes

/** Node options that an image may set; any other could weaken its isolation. */
const allowedOptions = new Set(['--enable-source-maps'])

/** Variables that affect Node, its libraries or the shell that starts it. */
const unsafeVariables =
  /^(NODE_(?!ENV$)|LD_|DYLD_|GLIBC_|GCONV_|MALLOC_|LOCPATH$|OPENSSL_|SSL_|UV_|ENV$|BASH|IFS$|PS4$|SHELLOPTS$)/

/**
 * Runs images as processes of the platform's own Node, isolated by its permission model. It requires only Node, and
 * protects against accidents rather than malicious code: `isolation` lists the gaps.
 */
export const processLauncher = (userId?: number): Launcher => ({
  kind: 'process',
  isolation:
    'Process of Node with --permission: reads its image, writes a temporary folder, starts no programs or threads; heap ' +
    `${heapMegabytes} MB. ${userId === undefined ? 'Shares user, network and signals' : 'Has its own user and shares the network'} with the platform.`,
  prepare: (launch) => prepare(launch, userId),
})

/**
 * Returns the user for module processes if the platform runs as root and this user can access Node and the run folder;
 * otherwise undefined. `dataFolders` are the folders of the platform above the folders for images and running
 * instances.
 */
export async function findModuleUser(runFolder: string, dataFolders: readonly string[]): Promise<number | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const folder = join(runFolder, 'trial')
  await emptyFolder(folder)
  await Promise.all([...dataFolders, runFolder, folder].map(allowTraversal))
  const script = join(folder, 'trial.mjs')
  await writeFile(script, "console.log('ok')", { mode: 0o644 })
  const child = spawnWithWatchdog({ args: [process.execPath, script], env: {}, cwd: folder, userId: moduleUserId })
  const output = captureOutput([child.stdout, child.stderr], () => {})
  await child.cleanedUp
  await removeFolder(folder)
  return output.tail().trim() === 'ok' ? moduleUserId : undefined
}

async function prepare({ folder, socketFolder, image, protocol }: Launch, userId?: number): Promise<Command> {
  const { options, script } = parseCommand(image)
  // Node resolves links in the script's path, so the permitted path must be resolved too.
  const resolvedImage = { ...image, root: await realpath(image.root) }
  const cwd = pathIn(resolvedImage, '.')
  if (!(await isFolder(cwd))) throw cannotRunError(`its working directory ${workingDirectoryOf(image)} does not exist`)
  const temporaryFolder = join(folder, 'tmp')
  await mkdir(temporaryFolder, { mode: 0o700 })
  if (userId !== undefined) {
    await Promise.all([temporaryFolder, socketFolder].map((path) => chown(path, userId, userId)))
    const imageFolder = dirname(image.root)
    await Promise.all([dirname(folder), folder, dirname(imageFolder), imageFolder].map(allowTraversal))
  }
  const writablePaths = [temporaryFolder, socketFolder].map((path) => `${path}/`)
  const restrictions = [
    '--permission',
    '--disable-sigusr1',
    ...[`${resolvedImage.root}/`, ...writablePaths].map((path) => `--allow-fs-read=${path}`),
    ...writablePaths.map((path) => `--allow-fs-write=${path}`),
    `--max-old-space-size=${oldSpaceMegabytes}`,
    `--max-semi-space-size=${semiSpaceMegabytes}`,
  ]
  return {
    args: [process.execPath, ...restrictions, ...options, pathIn(resolvedImage, script[0]), ...script.slice(1)],
    env: {
      ...safeVariables(image),
      TMPDIR: temporaryFolder,
      ...protocol,
      [environmentNames.socket]: join(socketFolder, instanceSocketName),
    },
    cwd,
    ...(userId !== undefined && { userId }),
  }
}

function parseCommand(image: UnpackedImage): { options: string[]; script: [string, ...string[]] } {
  const args = nodeStartOf(image)?.args
  if (args === undefined)
    throw cannotRunError(`it starts ${JSON.stringify(startOf(image).join(' ').slice(0, 200))} and not Node`)
  const scriptIndex = args.findIndex((arg) => !arg.startsWith('-'))
  const options = scriptIndex === -1 ? args : args.slice(0, scriptIndex)
  const disallowedOption = options.find((option) => !allowedOptions.has(option))
  if (disallowedOption !== undefined)
    throw cannotRunError(`it starts Node with ${JSON.stringify(disallowedOption.slice(0, 200))}`)
  const [script, ...rest] = args.slice(options.length)
  if (script === undefined) throw cannotRunError('it starts Node without a script')
  return { options, script: [script, ...rest] }
}

const safeVariables = (image: UnpackedImage): Record<string, string> =>
  Object.fromEntries(Object.entries(imageVariablesOf(image)).filter(([name]) => !unsafeVariables.test(name)))

const isFolder = async (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )

const cannotRunError = (reason: string): RuntimeError =>
  new RuntimeError(
    'refused',
    `This image cannot run here: ${reason}. Without containers, modules run as processes of Node only.`,
  )
