import { execFile } from 'node:child_process'
import { basename, posix } from 'node:path'
import { promisify } from 'node:util'
import { systemPath } from './launcher.ts'

/** The platform's own Node for images that bring none: a program that needs nothing of the image. */
export interface BundledNode {
  /** What starts it in a container. */
  command: readonly string[]
  /** Files of this machine, by where they have to be in the container. */
  files: Readonly<Record<string, string>>
}

/** Folder in the container that holds nothing else. */
const folder = '/run/node'

/**
 * The running Node, its libraries, and the loader that joins them, to be shown to a container in a folder of their own: they
 * neither meet the libraries of the image nor miss what it does not have. Rejects where the machine does not tell them.
 */
export async function bundledNode(): Promise<BundledNode> {
  const { stdout } = await promisify(execFile)('ldd', [process.execPath], { env: { PATH: systemPath } })
  const libraries = [...stdout.matchAll(/^\s*(?:(\S+) => )?(\/\S+) \(0x/gm)]
  // The loader stands there by its path alone, or by it and where that leads.
  const loader = libraries.find(([, name = '/', path = '']) => name.startsWith('/') && /\/ld[^/]*\.so/.test(path))?.[2]
  if (loader === undefined) throw new Error(`The libraries of ${process.execPath} are not known.`)
  const inside = (path: string) => posix.join(folder, basename(path))
  const files = libraries.map(([, , path = '']) => [inside(path), path])
  return {
    command: [inside(loader), '--library-path', folder, inside('node')],
    files: { ...Object.fromEntries(files), [inside('node')]: process.execPath },
  }
}
