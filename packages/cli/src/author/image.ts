import { rm, writeFile } from 'node:fs/promises'
import type { ModuleManifest } from '@platform/contract/manifest'
import { type BuiltImage, buildImage, buildNodeLayer } from '@platform/oci/build'
import { currentPlatform } from '@platform/oci/image'
import { exportLayout } from '@platform/oci/layout'
import type { FileToPack } from '@platform/oci/pack'
import { CliError } from '../exit.ts'
import { type Base, fetchLayers, formatPlatform, openBase, platformOf, readBase } from './base.ts'
import { bundle } from './bundle.ts'
import { manifestText, renewManifest, tagOf } from './manifest.ts'
import type { Project } from './project.ts'

/**
 * Updates a module's manifest and builds its image as an OCI layout. The same files and base produce the same image.
 */
export async function buildProject(
  project: Project,
  base: Base,
): Promise<{ image: BuiltImage; manifest: ModuleManifest }> {
  const platform = platformOf(base)
  if (base.withNode) requireNodeFor(formatPlatform(platform))
  const { manifest } = await renewManifest(project)
  const program = await bundle(project)
  const remoteImage = base.from === undefined ? undefined : openBase(base.from, manifest)
  const image = await buildImage({
    files: await filesOf(project, program),
    config: { Entrypoint: ['node', programPath], Cmd: [], WorkingDir: '/app' },
    labels: labelsOf(manifest),
    ...(base.withNode && { layers: [await buildNodeLayer()] }),
    ...(remoteImage && { base: await readBase(remoteImage, platform) }),
    platform,
  })
  await rm(project.imageFolder, { recursive: true, force: true })
  const layers = remoteImage ? await fetchLayers(remoteImage, image.layers) : image.layers
  await exportLayout({ ...image, layers }, project.imageFolder, [tagOf(manifest.metadata.version), 'latest'])
  await writeFile(project.programFile, program)
  return { image, manifest }
}

// The Node.js of this machine runs only on the same platform.
function requireNodeFor(platform: string): void {
  const ownPlatform = formatPlatform(currentPlatform())
  if (process.platform === 'linux' && ownPlatform === platform) return
  const advice = 'Build on an image with Node.js instead: --from <image>'
  throw new CliError('usage', `--with-node needs a Linux machine of the target platform. ${advice}`)
}

const programPath = '/app/main.mjs'

/** Files of the topmost layer of the image: the manifest and the program. */
export const filesOf = async (project: Project, program: Uint8Array): Promise<FileToPack[]> => [
  { path: '/module.json', content: await manifestText(project) },
  { path: programPath, content: program },
]

const labelsOf = ({ metadata: { id, version, repositoryUrl } }: ModuleManifest): Record<string, string> => ({
  'org.platform.module': 'true',
  'org.platform.module.id': id,
  'org.platform.module.version': version,
  ...(repositoryUrl !== undefined && { 'org.opencontainers.image.source': repositoryUrl }),
})
