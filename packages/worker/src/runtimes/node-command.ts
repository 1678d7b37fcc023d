import { posix } from 'node:path'
import { type UnpackedImage } from './launcher.ts'
import { RuntimeError } from './port.ts'

/** What an image says of its start, read as the start of a Node program. Paths of it never lead out of its root. */

/** What the official images of Node start first; without it the same runs. */
const entrypoint = 'docker-entrypoint.sh'

/** What an image starts: a program and its arguments. Throws `RuntimeFailure`, `refused`, where no system could. */
export function startOf({ config }: UnpackedImage): string[] {
  const command = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])]
  const isCommand = command[0] && command.every((part) => !part.includes('\0'))
  if (!isCommand) throw new RuntimeError('refused', 'This image cannot run: it does not say what it starts.')
  return command
}

/** A start of Node: its name or path in the image, and what it is given. */
export interface NodeStart {
  program: string
  args: string[]
}

/** How an image starts Node; undefined where it starts something else. */
export function nodeStartOf(image: UnpackedImage): NodeStart | undefined {
  const command = startOf(image)
  const [program = '', ...args] = posix.basename(command[0] ?? '') === entrypoint ? command.slice(1) : command
  return ['node', 'nodejs'].includes(posix.basename(program)) ? { program, args } : undefined
}

/** The working directory, absolute in the image. */
export const workingDirectory = ({ config }: UnpackedImage): string => posix.join('/', config.WorkingDir ?? '')

/** Where a path of an image is on this machine; a relative one is from the working directory. */
export const pathIn = (image: UnpackedImage, path: string): string =>
  posix.join(image.root, posix.resolve(workingDirectory(image), path))
