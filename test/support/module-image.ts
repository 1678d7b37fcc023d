import { buildImage, type ImageToBuild } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { pushImage } from '@platform/oci/push'
import { programOf } from './author.ts'

export interface PushedImage {
  repository: string
  digest: string
}

type ImageParts = Pick<Partial<ImageToBuild>, 'config' | 'layers' | 'labels'> & { files?: ImageToBuild['files'] }

export async function pushProgram(
  client: RegistryClient,
  repository: string,
  source: string,
  { config, files = [], ...parts }: ImageParts = {},
): Promise<PushedImage> {
  const image = await buildImage({
    files: [{ path: '/app/main.mjs', content: source }, ...files],
    config: { Cmd: ['node', 'main.mjs'], WorkingDir: '/app', ...config },
    ...parts,
  })
  await pushImage(client, repository, image, [])
  return { repository: `${client.registry}/${repository}`, digest: image.digest }
}

export async function pushFixture(
  client: RegistryClient,
  name: string,
  args: readonly string[] = [],
  config: ImageToBuild['config'] = {},
): Promise<PushedImage> {
  const { program } = await programOf(name)
  return pushProgram(client, name, program, { config: { Cmd: ['node', 'main.mjs', ...args], ...config } })
}

export const bundleFixture = async (name: string): Promise<string> => (await programOf(name)).program
