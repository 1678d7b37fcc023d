import { execFile } from 'node:child_process'
import { basename, posix } from 'node:path'
import { promisify } from 'node:util'
import { systemPath } from './launcher.ts'

/** The platform's own Node for images without one: it needs no files of the image. */
export interface BundledNode {
  /** The command that starts it in a container. */
  command: readonly string[]
  /** Host files by their paths in the container. */
  files: Readonly<Record<string, string>>
}

/** Container folder that contains no other files. */
const folder = '/run/node'

/**
 * The running Node, its libraries and their loader, mounted into a separate folder of a container: they neither
 * conflict with the image's libraries nor need them. Throws if the machine does not list them.
 */
export async function bundledNode(): Promise<BundledNode> {
  const { stdout } = await promisify(execFile)('ldd', [process.execPath], { env: { PATH: systemPath } })
  const libraries = [...stdout.matchAll(/^\s*(?:(\S+) => )?(\/\S+) \(0x/gm)]
  // `ldd` lists the loader by its path alone, or together with the path that it resolves to.
  const loader = libraries.find(([, name = '/', path = '']) => name.startsWith('/') && /\/ld[^/]*\.so/.test(path))?.[2]
  if (loader === undefined) throw new Error(`The libraries of ${process.execPath} are not known.`)
  const inside = (path: string) => posix.join(folder, basename(path))
  const files = libraries.map(([, , path = '']) => [inside(path), path])
  return {
    command: [inside(loader), '--library-path', folder, inside('node')],
    files: { ...Object.fromEntries(files), [inside('node')]: process.execPath },
  }
}
