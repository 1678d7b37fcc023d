import { type ImageConfig } from '@platform/oci/types'
import { type Deployment } from '@platform/core/modules/record'

/** An image on this machine. */
export interface UnpackedImage {
  /** Absolute path of what is `/` to the image. */
  root: string
  /** How the image is started. */
  config: ImageConfig['config']
}

/** One start of an instance. */
export interface Launch {
  /** Tells it apart from whatever runs on this machine: letters, digits and `-`. */
  name: string
  /** Folder of its own, empty; it is gone when the instance is. */
  folder: string
  /** Folder in it, where the instance may make its socket, `instanceSocket`. */
  socketFolder: string
  image: UnpackedImage
  /** What the platform tells the instance; the launcher adds where to listen. */
  protocol: Readonly<Record<string, string>>
}

/** What to run for an instance. */
export interface Command {
  /** The program, by its absolute path, and its arguments. */
  args: readonly string[]
  /** The whole environment. */
  env: Readonly<Record<string, string>>
  /** Working directory. */
  cwd: string
  /** A command that ends what the instance's process group leaves, and may fail where there is nothing. */
  cleanUp?: readonly string[]
  /** Called once it listens: takes away what was needed to start only. */
  onListening?: () => Promise<void>
}

/** A way to run images on this machine. */
export interface Launcher {
  kind: Exclude<Deployment['runtime'], 'lambda'>
  /** In words for people: what keeps an instance apart from the platform, and what does not. */
  isolation: string
  /** How to start an instance. Throws `RuntimeFailure`, `refused`, for an image that cannot be run this way. */
  prepare: (launch: Launch) => Promise<Command>
}

/** Where programs of this machine are found, whatever the platform's own environment says. */
export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The name of an instance's socket in its folder. */
export const instanceSocket = 'm'

/** The variables that an image brings, but for those that are the platform's to set, and what no system can pass on. */
export function imageVariables({ config }: UnpackedImage): Record<string, string> {
  const variables = (config.Env ?? []).flatMap((text) => {
    const [, name = '', value = ''] = /^([A-Za-z_]\w*)=([^\0]*)$/.exec(text) ?? []
    return name === '' || name.startsWith('PLATFORM_') ? [] : [[name, value]]
  })
  return Object.fromEntries(variables)
}
