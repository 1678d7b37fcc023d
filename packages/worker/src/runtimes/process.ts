import { mkdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { environmentNames } from '@platform/modules/protocol'
import {
  type Command,
  imageVariables,
  instanceSocket,
  type Launch,
  type Launcher,
  type UnpackedImage,
} from './launcher.ts'
import { nodeStartOf, pathIn, startOf, workingDirectory } from './node-command.ts'
import { RuntimeError } from './port.ts'

/** Heap for JavaScript objects: the old generation, and three semi-spaces for new ones. Excludes buffers. */
const oldMegabytes = 208
const spaceMegabytes = 16
const heapMegabytes = oldMegabytes + 3 * spaceMegabytes

/** Node options that an image may set; any other could weaken its isolation. */
const allowedOptions = new Set(['--enable-source-maps'])

/** Variables that affect Node, its libraries or the shell that starts it. */
const unsafeVariables =
  /^(NODE_(?!ENV$)|LD_|DYLD_|GLIBC_|GCONV_|MALLOC_|LOCPATH$|OPENSSL_|SSL_|UV_|ENV$|BASH|IFS$|PS4$|SHELLOPTS$)/

/**
 * Runs images as processes of the platform's own Node, isolated by its permission model. It requires only Node, and
 * protects against accidents rather than malicious code: `isolation` lists the gaps.
 */
export const processLauncher: Launcher = {
  kind: 'process',
  isolation:
    'Process of Node with --permission: reads its image, writes a temporary folder, starts no programs or threads; heap ' +
    `${heapMegabytes} MB. Shares user, network and signals with the platform.`,
  prepare,
}

async function prepare({ folder, socketFolder, image, protocol }: Launch): Promise<Command> {
  const { options, script } = parse(image)
  // Node resolves links in the script's path, so the permitted path must be resolved too.
  const resolvedImage = { ...image, root: await realpath(image.root) }
  const cwd = pathIn(resolvedImage, '.')
  if (!(await isFolder(cwd))) throw cannotRun(`its working directory ${workingDirectory(image)} does not exist`)
  const temporary = join(folder, 'tmp')
  await mkdir(temporary, { mode: 0o700 })
  const writable = [temporary, socketFolder].map((path) => `${path}/`)
  const restrictions = [
    '--permission',
    ...[`${resolvedImage.root}/`, ...writable].map((path) => `--allow-fs-read=${path}`),
    ...writable.map((path) => `--allow-fs-write=${path}`),
    `--max-old-space-size=${oldMegabytes}`,
    `--max-semi-space-size=${spaceMegabytes}`,
  ]
  return {
    args: [process.execPath, ...restrictions, ...options, pathIn(resolvedImage, script[0]), ...script.slice(1)],
    env: {
      ...safeVariables(image),
      TMPDIR: temporary,
      ...protocol,
      [environmentNames.socket]: join(socketFolder, instanceSocket),
    },
    cwd,
  }
}

function parse(image: UnpackedImage): { options: string[]; script: [string, ...string[]] } {
  const args = nodeStartOf(image)?.args
  if (args === undefined)
    throw cannotRun(`it starts ${JSON.stringify(startOf(image).join(' ').slice(0, 200))} and not Node`)
  const scriptIndex = args.findIndex((arg) => !arg.startsWith('-'))
  const options = scriptIndex === -1 ? args : args.slice(0, scriptIndex)
  const disallowed = options.find((option) => !allowedOptions.has(option))
  if (disallowed !== undefined) throw cannotRun(`it starts Node with ${JSON.stringify(disallowed.slice(0, 200))}`)
  const [script, ...rest] = args.slice(options.length)
  if (script === undefined) throw cannotRun('it starts Node without a script')
  return { options, script: [script, ...rest] }
}

const safeVariables = (image: UnpackedImage): Record<string, string> =>
  Object.fromEntries(Object.entries(imageVariables(image)).filter(([name]) => !unsafeVariables.test(name)))

const isFolder = async (path: string): Promise<boolean> =>
  stat(path).then(
    (current) => current.isDirectory(),
    () => false,
  )

const cannotRun = (reason: string): RuntimeError =>
  new RuntimeError(
    'refused',
    `This image cannot run here: ${reason}. Without a container runtime (runc), modules run as processes of Node only.`,
  )
