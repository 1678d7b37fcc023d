import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { formatReference, parseReference, targetOf } from '@platform/oci/reference'
import type { Image } from '@platform/oci/types'
import { unpackImage } from '@platform/oci/unpack'
import { type Code, InvalidEntrypoint, type Program } from './code.ts'
import { invalidValue } from './errors.ts'
import type { Settings } from './function.ts'

export interface ImageSource {
  registry: (host: string) => RegistryClient
  storeDir: string
}

/** Returns the code of an image, with the digest of its manifest. Throws for an index, as Lambda does. */
export async function imageCode({ registry, storeDir }: ImageSource, uri: string): Promise<Code> {
  const reference = parseReference(uri)
  if (reference === undefined) throw invalidValue(`The image URI ${JSON.stringify(uri)} is not valid.`)
  const client = registry(reference.registry)
  const image = await findImage(client, reference.repository, targetOf(reference), uri)
  const { registry: host, repository } = reference
  const ResolvedImageUri = formatReference({ registry: host, repository, digest: image.digest })
  return {
    packageType: 'Image',
    sha256: image.digest.slice('sha256:'.length),
    sizeBytes: 0,
    location: { RepositoryType: 'ECR', ImageUri: uri, ResolvedImageUri },
    prepare: async () => void (await unpackImage(client, image, storeDir)),
    program: async (settings) => programOf(image, await unpackImage(client, image, storeDir), settings),
  }
}

async function findImage(client: RegistryClient, repository: string, target: string, uri: string): Promise<Image> {
  try {
    const manifest = await client.manifest(repository, target)
    if (manifest === undefined) throw invalidValue(`Source image ${uri} does not exist.`)
    const image =
      'manifests' in manifest.content ? undefined : await readImage(client, repository, manifest.descriptor.digest)
    if (image !== undefined) return image
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
  }
  throw invalidValue(`The media type of the manifest, the configuration or a layer of ${uri} is not supported.`)
}

const architectures = { x86_64: 'amd64', arm64: 'arm64' } as const

/** Entrypoint script of official Node.js images; not needed here. */
const wrapper = 'docker-entrypoint.sh'

function programOf({ config }: Image, root: string, { architecture }: Settings): Program {
  const { Entrypoint = [], Cmd = [], WorkingDir = '/', Env = [] } = config.config
  const command = [...Entrypoint, ...Cmd]
  const [program = '', ...args] = basename(command[0] ?? '') === wrapper ? command.slice(1) : command
  if (config.architecture !== architectures[architecture]) {
    throw new InvalidEntrypoint(`Error: fork/exec ${program}: exec format error`)
  }
  if (basename(program) !== 'node') throw new InvalidEntrypoint(`Error: the emulator cannot start ${program}`)
  const variables = Env.map((text) => [text.split('=', 1)[0] ?? '', text.slice(text.indexOf('=') + 1)])
  return {
    arguments: args.map((argument) => resolveInRoot(root, argument)),
    folder: join(root, WorkingDir),
    environment: Object.fromEntries(variables),
  }
}

function resolveInRoot(root: string, argument: string): string {
  if (!argument.startsWith('/')) return argument
  const path = join(root, argument)
  return existsSync(path) ? path : argument
}
