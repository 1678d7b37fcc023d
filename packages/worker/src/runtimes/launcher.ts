import type { ImageConfig } from '@platform/oci/types'
import type { Deployment } from '@platform/core/modules/deployment'
import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, rm, stat } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface UnpackedImage {
  root: string
  config: ImageConfig['config']
}

export interface Launch {
  /** Unique on this machine: letters, digits and `-`. */
  name: string
  /** The instance's own empty folder; removed with the instance. */
  folder: string
  /** Subfolder where the instance may create its socket, `instanceSocketName`. */
  socketFolder: string
  image: UnpackedImage
  /** Environment variables of the platform; the launcher adds the socket path. */
  protocol: Readonly<Record<string, string>>
}

export interface Command {
  /** The program's absolute path and its arguments. */
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  /** User and group of the process; those of the platform by default. */
  userId?: number
  /** A command that stops remaining processes of the instance. It may fail if there are none. */
  cleanUpArgs?: readonly string[]
  /** Removes files that only the start needs. It is called once the instance listens. */
  onListening?: () => Promise<void>
}

export interface Launcher {
  kind: Exclude<Deployment['runtime'], 'lambda'>
  /** Describes for users how an instance is isolated from the platform, and the gaps. */
  isolation: string
  /** Prepares the start of an instance. Throws `RuntimeError` (`refused`) for an image that cannot run this way. */
  prepare: (launch: Launch) => Promise<Command>
}

/** Search path for programs of this machine, regardless of the platform's own environment. */
export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const instanceSocketName = 'm'

/** Returns the image's variables, except those reserved for the platform and those that no system can pass on. */
export function imageVariablesOf({ config }: UnpackedImage): Record<string, string> {
  const variables = (config.Env ?? []).flatMap((text) => {
    const [, name = '', value = ''] = /^([A-Za-z_]\w*)=([^\0]*)$/.exec(text) ?? []
    return name === '' || name.startsWith('PLATFORM_') ? [] : [[name, value]]
  })
  return Object.fromEntries(variables)
}

/** Removes a folder of the platform, regardless of the files and permissions that a module has created in it. */
export async function removeFolder(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 })
  await remove().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
    await promisify(execFile)('chmod', ['-R', 'u+rwx', path], { env: { PATH: systemPath } })
    await remove()
  })
}

/**
 * If the platform runs as root, its modules run as this user, which no machine assigns to a person. They can then
 * neither signal the platform nor read its files.
 */
export const moduleUserId = 65_532

/** Allows modules to access paths below the folder, but not to list the folder. */
export async function allowTraversal(folder: string): Promise<void> {
  await chown(folder, -1, moduleUserId)
  await chmod(folder, ((await stat(folder)).mode & 0o777) | 0o010)
}

/** Creates or empties a folder that only the platform's user can access. */
export async function emptyFolder(path: string): Promise<void> {
  await removeFolder(path)
  await mkdir(path, { recursive: true, mode: 0o700 })
}
