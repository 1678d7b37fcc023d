import { build } from 'esbuild'
import { buildImage, type ImageToBuild } from '@platform/oci/build'
import { type RegistryClient } from '@platform/oci/client'
import { pushImage } from '@platform/oci/push'
import { fixture } from './module-process.ts'

/** An image by digest, as an assignment names it. */
export interface PushedImage {
  repository: string
  digest: string
}

/** What an image of a test is made of, beside its one program `/app/main.mjs`. */
type Rest = Pick<Partial<ImageToBuild>, 'config' | 'layers' | 'labels'> & { files?: ImageToBuild['files'] }

/** Builds and pushes an image that starts Node with a program, given as source text. */
export async function pushProgram(
  client: RegistryClient,
  repository: string,
  source: string,
  { config, files = [], ...rest }: Rest = {},
): Promise<PushedImage> {
  const built = await buildImage({
    files: [{ path: '/app/main.mjs', content: source }, ...files],
    config: { Cmd: ['node', 'main.mjs'], WorkingDir: '/app', ...config },
    ...rest,
  })
  await pushImage(client, repository, built, [])
  return { repository: `${client.registry}/${repository}`, digest: built.digest }
}

/** The source text of a module of test/support/modules, in one file. */
export async function bundled(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fixture(name)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** Builds and pushes an image of a module of test/support/modules; `args` are those of its program. */
export async function pushFixture(
  client: RegistryClient,
  name: string,
  args: readonly string[] = [],
  config: ImageToBuild['config'] = {},
): Promise<PushedImage> {
  return pushProgram(client, name, await bundled(name), { config: { Cmd: ['node', 'main.mjs', ...args], ...config } })
}
