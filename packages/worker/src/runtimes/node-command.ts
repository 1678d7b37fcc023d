import { posix } from 'node:path'
import type { UnpackedImage } from './launcher.ts'
import { RuntimeError } from './port.ts'

/** Reads an image's start command as that of a Node program. Image paths never leave the image's root. */

/** Entrypoint script of the official Node images; the command works without it. */
const nodeEntrypoint = 'docker-entrypoint.sh'

/** Returns an image's command. Throws `RuntimeError` (`refused`) if there is none, or it contains a NUL byte. */
export function startOf({ config }: UnpackedImage): string[] {
  const command = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])]
  const isValidCommand = Boolean(command[0]) && command.every((part) => !part.includes('\0'))
  if (!isValidCommand) throw new RuntimeError('refused', 'This image cannot run: it has no command.')
  return command
}

export interface NodeStart {
  program: string
  args: string[]
}

/** Returns the Node command of an image, or undefined if the image starts another program. */
export function nodeStartOf(image: UnpackedImage): NodeStart | undefined {
  const command = startOf(image)
  const [program = '', ...args] = posix.basename(command[0] ?? '') === nodeEntrypoint ? command.slice(1) : command
  return ['node', 'nodejs'].includes(posix.basename(program)) ? { program, args } : undefined
}

export const workingDirectoryOf = ({ config }: UnpackedImage): string => posix.join('/', config.WorkingDir ?? '')

/** Returns the host path of an image path. Relative paths start at the working directory. */
export const pathIn = (image: UnpackedImage, path: string): string =>
  posix.join(image.root, posix.resolve(workingDirectoryOf(image), path))
